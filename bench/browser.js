// What a document of the page measures of itself: from an input event to the frame that shows it, and its longest task.
// 1. `timeStamp` is when the browser got the input; the frame is over when a task posted from within it runs.
window.benched = { frames: {}, longest: 0 };
for (const kind of ["keydown", "pointermove", "pointerup"])
  addEventListener(
    kind,
    (event) => {
      const began = event.timeStamp;
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => (window.benched.frames[kind] ??= []).push(performance.now() - began);
        port2.postMessage(null);
      });
    },
    { capture: true },
  );
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.benched.longest = Math.max(window.benched.longest, duration);
}).observe({ type: "longtask", buffered: true });
