// A browser starts no worker for a page of the file system: there the search runs in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = Object.assign(document.createElement("iframe"), { hidden: true });
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inner.importScripts = (...urls) => urls.reduce((done, one) => done.then(() => this.load(one)), Promise.resolve());
      this.loaded = this.load(new URL(url, location));
    }
    load(src) {
      return new Promise((resolve, reject) => {
        const script = Object.assign(this.inner.document.createElement("script"), { src, onload: resolve, onerror: reject });
        this.inner.document.body.append(script);
      });
    }
    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
