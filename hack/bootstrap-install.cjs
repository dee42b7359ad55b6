'use strict';
const { spawn, spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const { existsSync, readFileSync, statfsSync, writeFileSync } = require('node:fs');
const path = require('node:path');

const { lockInstallation } = require('./installation-lock.cjs');

const root = path.resolve(__dirname, '..');
const modules = path.join(root, 'node_modules');
/** Says which lockfile the installation belongs to, and that it was complete. */
const stamp = path.join(modules, '.machinist-installed');

const ROOM_BYTES = 650e6;
const DISK_FULL = 'The disk is full: free about 1 GB where this checkout lies, then try again.';

/** Program of each command, run by the pinned Node. */
const programs = {
  demo: ['cmd/demo/main.ts'],
  machinist: ['cmd/machinist/main.ts'],
  test: ['hack/test/main.ts'],
  'test-ironcore': ['hack/ironcore/main.ts'],
  'test-providers': ['hack/providers/main.ts'],
  check: ['hack/check/main.ts'],
  mutations: ['hack/mutations/main.ts'],
  bench: ['hack/bench/main.ts'],
  simulate: ['hack/simulate/main.ts'],
  playground: ['hack/playground/main.ts'],
  release: ['hack/release/main.ts'],
  'npm-package': ['hack/npm-package/main.ts'],
};

/** How often it is said that npm still works: in place on a terminal, otherwise with a line of its own. */
const TICK_MS = process.stderr.isTTY ? 1_000 : 10_000;
const INTERRUPTED = 130;

/** Installs if needed, then runs `command` and ends with its exit code. */
exports.main = async function main([command, ...args], ownNode) {
  const program = programs[command];
  if (program === undefined)
    fail(`unknown command "${command}": one of ${Object.keys(programs).join(', ')} is expected`);
  await installIfNeeded();
  const [file, ...rest] = program;
  runWith(findNode(ownNode), [path.join(root, file), ...rest, ...args], placeOf(command, process.env, process.cwd()));
};

/** Where a program is started. Files that a user names, and the folder of a new driver, are where npm was; npm goes to the checkout. */
function placeOf(command, { INIT_CWD }, cwd) {
  return command === 'machinist' ? (INIT_CWD ?? cwd) : root;
}
exports.placeOf = placeOf;

async function installIfNeeded() {
  const wanted = createHash('sha256')
    .update(packagesOf(readFileSync(path.join(root, 'package-lock.json'), 'utf8')))
    .update(`${process.platform}-${process.arch}`)
    .digest('hex');
  const isInstalled = () => existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted;
  if (isInstalled()) return;

  requireRoom();
  const release = await lockOrFail();
  if (!isInstalled()) await installAll(wanted);
  release();
}

async function lockOrFail() {
  try {
    return await lockInstallation(path.join(root, '.machinist-installing'), sayWaiting());
  } catch (err) {
    return fail(err.code === 'ENOSPC' ? DISK_FULL : `Nothing can be installed in this checkout: ${err.message}`);
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
  }
}

/** Says, at the pace of an installation's own lines, that another process installs the packages. */
function sayWaiting() {
  let saidMs = -Infinity;
  return (ms) => {
    if (ms - saidMs < TICK_MS) return;
    saidMs = ms;
    const line = `Waiting for another process that installs npm packages… ${Math.round(ms / 1000)} s`;
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${line}`);
    else console.error(line);
  };
}

async function installAll(wanted) {
  const [npm, prefix] = npmCommand();
  // NODE_ENV=production or a user's `omit` would leave out what the tests, or the pinned Node, come from.
  const kinds = ['--include=dev', '--include=optional'];
  const done = await install(npm, [...prefix, 'ci', ...kinds, '--no-audit', '--no-fund', '--loglevel=error']);
  if (done.error !== undefined)
    fail(`npm could not be started (${done.error.message}): install npm, which comes with Node, and try again`);
  if (done.isInterrupted) {
    console.error('Interrupted while npm packages were being installed; the next run starts again.');
    process.exit(INTERRUPTED);
  }
  // On a full disk npm may end well all the same, with files that are cut off.
  if (/ENOSPC/.test(done.stderr)) fail(DISK_FULL);
  if (done.status !== 0) {
    if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT/.test(done.stderr)) {
      fail('npm could not reach its package registry: check the network or the proxy settings of npm, then try again.');
    }
    fail(`npm ci failed with exit code ${done.status}:\n${done.stderr.trim().split('\n').slice(0, 20).join('\n')}`);
  }
  try {
    writeFileSync(stamp, wanted);
  } catch (err) {
    if (err.code !== 'ENOSPC') throw err;
    fail(DISK_FULL);
  }
}

/**
 * Runs npm, and shows that it still works. Ends with what it said on standard error; Ctrl-C and SIGTERM end it too, the second one at once.
 */
function install(npm, args, tickMs = TICK_MS) {
  const started = Date.now();
  const what = 'Installing npm packages (about 500 MB, once; a minute or two)…';
  const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`;
  const { isTTY } = process.stderr;
  const say = (line) => (isTTY ? process.stderr.write(`\r\x1b[2K${line}`) : console.error(line));
  say(what);
  const ticker = setInterval(
    () => say(isTTY ? `${what} ${seconds()}` : `Still installing npm packages… ${seconds()}`),
    tickMs,
  );
  return new Promise((resolve) => {
    const child = spawn(npm, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    let stops = 0;
    const stop = () => {
      if (isTTY) {
        clearInterval(ticker);
        say('Stopping npm, which may take a while; Ctrl-C again kills it…');
      }
      child.kill(stops++ === 0 ? 'SIGTERM' : 'SIGKILL');
    };
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    const end = (result) => {
      clearInterval(ticker);
      for (const signal of signals) process.off(signal, stop);
      if (isTTY) process.stderr.write('\r\x1b[2K');
      if (result.status === 0) console.error(`Installed npm packages in ${seconds()}.`);
      resolve({ ...result, stderr, isInterrupted: stops > 0 });
    };
    for (const signal of signals) process.on(signal, stop);
    child.stderr.on('data', (chunk) => (stderr += chunk));
    child.once('error', (error) => end({ error }));
    child.once('close', (status) => end({ status }));
  });
}
exports.install = install;

/** What a lockfile installs: without this project itself, whose version changes nothing. */
function packagesOf(lockfile) {
  const { packages } = JSON.parse(lockfile);
  return JSON.stringify({ ...packages, '': undefined });
}
exports.packagesOf = packagesOf;

/** npm takes minutes to find out that the disk is full. */
function requireRoom() {
  if (statfsSync === undefined || existsSync(modules)) return; // Node before 18.15; what an update takes is not known
  const { bavail, bsize } = statfsSync(root);
  if (bavail * bsize < ROOM_BYTES) fail(DISK_FULL);
}

/** npm as it was started, or the one in PATH. */
function npmCommand() {
  const script = process.env.npm_execpath;
  return script !== undefined && script.endsWith('npm-cli.js') ? [process.execPath, [script]] : ['npm', []];
}

/** The Node that npm installed from the lockfile, else the present one if it is new enough. */
function findNode(ownNode) {
  const candidates = [path.join(modules, '.bin', 'node'), process.execPath];
  for (const candidate of candidates) {
    const answer = spawnSync(candidate, ['--version'], { encoding: 'utf8' });
    const version = /^v(\d+)\.(\d+)/.exec(answer.stdout ?? '');
    if (version === null) continue;
    const [major, minor] = [Number(version[1]), Number(version[2])];
    if (major > ownNode[0] || (major === ownNode[0] && minor >= ownNode[1])) return candidate;
  }
  return fail(
    `Machinist runs on Node ${ownNode.join('.')} or newer. npm brings it along on Linux (x64, arm64); on ${process.platform} ${process.arch} install it yourself, then try again.`,
  );
}

/** Signals go on to the program, which cleans up; we end when it has ended. */
function runWith(node, args, cwd) {
  const child = spawn(node, args, {
    cwd,
    stdio: 'inherit',
    env: {
      // Programs run from TypeScript: what Node made of it is kept for the next process, which starts in a third of the time.
      NODE_COMPILE_CACHE: path.join(modules, '.cache', 'node-compile-cache'),
      ...process.env,
      PATH: `${path.join(modules, '.bin')}${path.delimiter}${process.env.PATH ?? ''}`,
    },
  });
  // A terminal sends Ctrl-C to the whole group, the program included: it must not be sent twice.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  process.on('SIGHUP', () => child.kill('SIGTERM'));
  child.on('error', (err) => fail(`${node} could not be started: ${err.message}`));
  child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 143)));
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
