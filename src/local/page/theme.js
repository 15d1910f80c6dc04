/* The chosen theme and text size, set before anything is drawn: a script of its own, as the policy allows none in the
 * index. state/look.js changes them later. */
try {
  document.documentElement.dataset.theme = localStorage.getItem("local2.theme") ?? "system";
  document.documentElement.dataset.text = localStorage.getItem("local2.text") ?? "100";
} catch {
  // a browser that keeps nothing: the system's theme
}
