// Keeps work that many events ask for at a bounded rate.

/**
 * Returns a function that runs `work`: at once if it has rested for `rest` ms, else as soon as it
 * has. It never runs twice at a time, and always once more after the last call.
 */
export function paced(work, rest) {
  let state = 'idle';
  let last = -Infinity;
  let timer;

  async function run() {
    state = 'running';
    try {
      await work();
    } finally {
      const again = state === 'again';
      last = performance.now();
      state = 'idle';
      if (again) ask();
    }
  }

  function ask() {
    if (state === 'running') state = 'again';
    if (state !== 'idle') return;
    state = 'waiting';
    timer = setTimeout(run, Math.max(0, last + rest - performance.now()));
  }

  ask.stop = () => {
    clearTimeout(timer);
    state = 'stopped';
  };
  return ask;
}
