// For servers that demand Trusted Types: the addresses of scripts that workers start are vouched for if they are of this
// address. Pages have the same in first.js.

try {
  const createScriptURL = (url) => (new URL(url, self.location.href).origin === self.location.origin ? url : null);
  globalThis.trustedTypes?.createPolicy("default", { createScriptURL });
} catch {
  // the server forbids policies: what needs one fails, and the page says why
}
