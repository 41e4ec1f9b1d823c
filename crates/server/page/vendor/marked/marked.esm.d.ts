export * from "./marked.js";
