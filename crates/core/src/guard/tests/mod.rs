mod reading;
mod rules;
mod story;
