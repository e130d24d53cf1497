// One system in a worker of its own. Classic or module, as the system needs: see remote.js.

const system = new URL(self.location.href).searchParams.get("system");
const coming = import(`./systems/${system}.js`); // beside what serves it
coming.catch(() => {}); // who starts it hears of it
import("./runner.js").then(({ serve }) => serve(system, coming));
