// What elements become in the page that is built, by build.mjs: calls of `h` are a kilobyte smaller, packed, than those of the automatic runtime.
export { Fragment, h } from "preact";
