'use strict';
const { readFileSync, rmSync, statSync, utimesSync, writeFileSync } = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');

/** How often the holder shows that it lives, and others look. */
const BEAT_MS = 1_000;
/** A lock without a sign of life for this long belongs to a process that died. Its process ID proves nothing: another one may have it by now. */
const STALE_MS = 15_000;
/** Of processes that take over a stale lock together, the last one to write has it; by now all have written. */
const SETTLE_MS = 300;

/**
 * Takes the lock file `file`, so that one process at a time installs packages in a checkout: npm empties `node_modules` first, which would break an
 * installation in progress. Calls `wait` with the milliseconds so far while another process holds it. Returns a function that releases the
 * lock; the exit of the process releases it as well.
 */
exports.lockInstallation = async function lockInstallation(file, wait, { beatMs = BEAT_MS, staleMs = STALE_MS } = {}) {
  const token = `${process.pid}-${Math.random().toString(36).slice(2)}\n`;
  const started = Date.now();
  while (!(await take(file, token, staleMs))) {
    wait(Date.now() - started);
    await sleep(beatMs);
  }
  const beat = setInterval(() => {
    // Whoever took it over while this process was halted, as a laptop asleep is, shows its own life.
    if (holderOf(file) === token) touch(file);
  }, beatMs);
  beat.unref();
  const release = () => {
    clearInterval(beat);
    process.off('exit', release);
    if (holderOf(file) === token) rmSync(file, { force: true });
  };
  process.on('exit', release);
  return release;
};

async function take(file, token, staleMs) {
  try {
    writeFileSync(file, token, { flag: 'wx' });
    return true;
  } catch (err) {
    if (err.code !== 'EEXIST') throw err;
  }
  const heldMs = ageMsOf(file);
  if (heldMs === undefined || heldMs < staleMs) return false;
  writeFileSync(file, token);
  await sleep(SETTLE_MS);
  return holderOf(file) === token;
}

function ageMsOf(file) {
  try {
    // Where the clock was ahead, a lock may be from the future; it must not last until then.
    return Math.abs(Date.now() - statSync(file).mtimeMs);
  } catch {
    return undefined; // released since
  }
}

function holderOf(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function touch(file) {
  try {
    const now = new Date();
    utimesSync(file, now, now);
  } catch {
    // Removed by hand: the installation continues without it.
  }
}
