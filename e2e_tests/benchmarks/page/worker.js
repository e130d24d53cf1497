// One system in a worker of its own. Classic or module, as the system needs: see remote.js.

const system = new URL(self.location.href).searchParams.get("system");
import("./runner.js").then(({ serve }) => serve(system));
