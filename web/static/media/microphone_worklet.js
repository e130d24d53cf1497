// Runs beside the browser's sound: passes what the microphone hears on, block by block (microphone.js).

registerProcessor("microphone", class extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage(samples.slice());
    return true;
  }
});
