'use strict';
// One suite is a list of steps. The first failed step ends the suite, because later steps would only fail because of it.

// Of a step that takes seconds: a machine may be ten times as slow.
const STEP_DEADLINE_MS = 120_000;

class StepFailed extends Error {}

function withDeadline(promise, milliseconds, what) {
  let timer;
  const deadline = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing after ${milliseconds} ms: ${what}`)), milliseconds);
  });
  return Promise.race([promise, deadline]).finally(() => clearTimeout(timer));
}

/** Runs `body(step)`, prints TAP with the time of each step, and ends the process: 0 when every step passed. */
async function suite(body) {
  let count = 0;
  let failed = false;
  const step = async (title, action) => {
    count += 1;
    const [number, begun] = [count, Date.now()];
    const line = () => `ok ${number} - ${title} # ${((Date.now() - begun) / 1_000).toFixed(1)} s`;
    try {
      const value = await withDeadline(Promise.resolve().then(action), STEP_DEADLINE_MS, title);
      console.log(line());
      return value;
    } catch (error) {
      console.log(`not ${line()}`);
      for (const line of String(error.stack ?? error).split('\n')) console.log(`  # ${line}`);
      throw new StepFailed(title);
    }
  };
  try {
    await body(step);
  } catch (error) {
    failed = true;
    if (!(error instanceof StepFailed)) console.log(`not ok ${(count += 1)} - outside any step\n  # ${error.stack}`);
  }
  console.log(`1..${count}`);
  process.exit(failed || count === 0 ? 1 : 0);
}

module.exports = { suite, withDeadline };
