mod next;
mod reading;
mod rules;
mod story;
