mod next;
mod reading;
mod reply;
mod rules;
mod story;
