import childProcess from 'node:child_process';
import crypto from 'node:crypto';
import dns from 'node:dns';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { performance } from 'node:perf_hooks';

const OURS = /\/(pkg|test\/simulation)\//;
/** Node itself may still have modules to load. */
const LOADING = /node:internal\/modules\//;

type AnyFunction = (...given: never[]) => unknown;
/** Whether a caller is to be refused, by so many files of its stack, the nearest first. */
interface Refusal {
  readonly files: number;
  readonly refuses: (files: readonly string[]) => boolean;
}

/** Libraries may ask on: none of what they are told comes into a world. */
const FROM_OURS: Refusal = { files: 1, refuses: ([caller = '']) => OURS.test(caller) };
/** The same of what Node hands on to it. */
const THROUGH_NODE: Refusal = { files: 2, refuses: (files) => OURS.test(files.find(isNotOfNode) ?? '') };
/** What such a call ends with comes when the host likes, whoever asked for it. */
const FROM_ANYONE: Refusal = { files: 30, refuses: (files) => !files.some((file) => LOADING.test(file)) };

let isOpen = false;

/**
 * Makes what a seed does not decide throw in this process: randomness, time and timers of the host where code of the product or of a world
 * asks for them; files, processes and sockets for everybody. For programs that do nothing else.
 */
export function guardAgainstHost(): void {
  guard(Math, ['random'], FROM_OURS);
  guard(Date, ['now'], FROM_OURS);
  guardDate();
  guard(performance, ['now'], FROM_OURS);
  guard(globalThis, ['setTimeout', 'setInterval'], FROM_OURS);
  guard(crypto, ['randomInt', 'randomBytes', 'randomUUID'], FROM_OURS);
  guard(crypto.webcrypto, ['randomUUID', 'getRandomValues'], THROUGH_NODE);
  guard(fs, functionsOf(fs), FROM_ANYONE);
  guard(fs.promises, functionsOf(fs.promises), FROM_ANYONE);
  guard(childProcess, functionsOf(childProcess), FROM_ANYONE);
  guard(net, ['connect', 'createConnection', 'createServer'], FROM_ANYONE);
  guard(dns, ['lookup', 'resolve'], FROM_ANYONE);
  syncBuiltinESMExports();
}

/** Lets `run` use the host, which is no part of a world. */
export function withHost<T>(run: () => T): T {
  isOpen = true;
  try {
    return run();
  } finally {
    isOpen = false;
  }
}

/** But for classes. */
function functionsOf(of: object): string[] {
  return Object.entries(of).flatMap(([name, member]) =>
    typeof member === 'function' && /^[a-z]/.test(name) ? [name] : [],
  );
}

function guard(of: object, names: readonly string[], refusal: Refusal): void {
  const members = of as Record<string, AnyFunction>;
  for (const name of names) {
    const real = members[name]!;
    const guarded = function (this: unknown, ...given: never[]): unknown {
      refuse(name, refusal, guarded);
      return real.apply(this, given);
    };
    members[name] = Object.assign(guarded, real);
  }
}

/** A Date that is given no time is that of the host; one that is given something is not. */
function guardDate(): void {
  const guarded = new Proxy(Date, {
    construct: function construct(real, given, by) {
      if (given.length === 0) refuse('new Date', FROM_OURS, construct);
      return Reflect.construct(real, given, by) as Date;
    },
    apply: function apply(real) {
      refuse('Date', FROM_OURS, apply);
      return real();
    },
  });
  Object.assign(Date.prototype, { constructor: guarded });
  globalThis.Date = guarded;
}

/** Throws if who called `below` is not to be answered. */
function refuse(name: string, { files, refuses }: Refusal, below: AnyFunction): void {
  if (!isOpen && refuses(filesOf(files, below))) throw new Error(`${name} is not the seed's`);
}

function isNotOfNode(file: string): boolean {
  return !file.startsWith('node:');
}

/** The files of who called `below`, the nearest first. Some ask often: no more is made than is looked at. */
function filesOf(count: number, below: AnyFunction): readonly string[] {
  const { stackTraceLimit } = Error;
  const prepareStackTrace: unknown = Reflect.get(Error, 'prepareStackTrace');
  const asked: { stack?: unknown } = {};
  Error.stackTraceLimit = count;
  Error.prepareStackTrace = (_error, sites) => sites.map((site) => site.getFileName() ?? '');
  Error.captureStackTrace(asked, below);
  const { stack } = asked;
  Error.stackTraceLimit = stackTraceLimit;
  Reflect.set(Error, 'prepareStackTrace', prepareStackTrace);
  return stack as readonly string[];
}
