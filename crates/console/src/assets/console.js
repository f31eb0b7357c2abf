// Replaces the live part of a page when it has changed. Without this script a reload does the same.
const part = document.querySelector("[data-live]");
let events = null;

function follow() {
  if (events || !part || document.hidden) return;
  events = new EventSource(part.dataset.live);
  events.onmessage = (event) => { part.innerHTML = event.data; };
}

// A page in the background holds no connection: a browser has six for a host.
document.addEventListener("visibilitychange", () => {
  if (document.hidden && events) { events.close(); events = null; }
  follow();
});
follow();
