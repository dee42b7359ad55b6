import { parentPort, workerData } from 'node:worker_threads';

import { ServerTime } from '../../base/clock/server-time.ts';
import { SystemClock } from '../../base/clock/system-clock.ts';
import { LeaseFence } from '../gate/fence.ts';
import { HttpLeaseClient } from '../client/lease-client.ts';
import { Transport } from '../client/transport.ts';
import type { Logger } from '../../base/log/logger.ts';
import { Elector } from './elector.ts';
import type { LeaseLabels } from './lease.ts';
import type { ForwardedLevel, LeaseOrder, LeaseReport, LeaseThreadData, LoggedError } from './lease-messages.ts';
import { stalledForMs } from './pulse.ts';
import { RelayedEndpoint } from './relayed-endpoint.ts';

/*
 * The thread of the Leases: electors with an event loop, connections and a clock of their own, started by LeaseThread. It does
 * nothing else, so that no amount of work makes a renewal late. It tells what it sees by messages; the fence is shared memory.
 */

const data = workerData as LeaseThreadData;
const port = parentPort;
if (port === null) throw new Error('not running in a worker thread');

const clock = new SystemClock();
const serverTime = new ServerTime({ clock });
const endpoint = new RelayedEndpoint({ url: data.url, requestRenewal: () => report({ kind: 'credentials-refused' }) });
const transport = new Transport({
  endpoint,
  clock,
  userAgent: data.userAgent,
  onRequest: (record) => {
    serverTime.observe(record);
    report({ kind: 'request', record });
  },
});
const client = new HttpLeaseClient({ transport, namespace: data.namespace });
const candidacies = new Map<string, { elector: Elector; stop: AbortController }>();

function report(message: LeaseReport): void {
  port?.postMessage(message);
}

function logAt(level: ForwardedLevel): Logger['info'] {
  return (fields, message) => {
    const { err, ...rest } = fields;
    report({ kind: 'log', level, fields: rest, ...(err === undefined ? {} : { err: plain(err) }), message });
  };
}

/** What is logged of an error; its class would be lost on the way. */
function plain(err: unknown): LoggedError {
  if (!(err instanceof Error)) return { name: 'Error', message: String(err), stack: undefined };
  const { name, message, stack, cause } = err;
  return { name, message: cause instanceof Error ? `${message}: ${cause.message}` : message, stack };
}

const log: Logger = {
  error: logAt('error'),
  warn: logAt('warn'),
  info: logAt('info'),
  debug: logAt('debug'),
  child: () => log,
};

/** A process whose main loop does not turn at all does not work, however well its Lease is renewed: somebody else shall. */
function requirePulse(): void {
  const stalledMs = stalledForMs(data.pulse, clock);
  if (stalledMs > data.longestStallMs) {
    throw new Error(`the event loop of the process has been blocked for ${Math.round(stalledMs)} ms`);
  }
}

function makeElector(name: string, memory: SharedArrayBuffer, labels: LeaseLabels | undefined): Elector {
  const elector: Elector = new Elector({
    name,
    labels,
    identity: data.identity,
    leases: {
      get: (lease, options) => client.get(lease, options),
      watch: (lease, signal) => client.watch(lease, signal),
      create: async (lease, options) => {
        requirePulse();
        return client.create(lease, options);
      },
      replace: async (lease, options) => {
        requirePulse();
        return client.replace(lease, options);
      },
    },
    timing: data.timing,
    clock,
    log,
    metrics: {
      isLeader: { set: (_labels, value) => report({ kind: 'is-leader', name, value }) },
      renewals: { inc: ({ result }) => report({ kind: 'renewal', name, result }) },
    },
    fence: new LeaseFence({ clock, renewDeadlineMs: data.timing.renewDeadlineMs, memory }),
    lost: (reason) => report({ kind: 'lost', name, reason }),
    announce: (lease, message) => report({ kind: 'announce', name, lease, message }),
    changed: () => {
      const { isLeading, lease, holder, trouble, isSuspended, ended } = elector;
      report({ kind: 'state', name, state: { isLeading, lease, holder, trouble, isSuspended, ended } });
    },
  });
  return elector;
}

async function acquire(name: string, memory: SharedArrayBuffer, labels: LeaseLabels | undefined): Promise<void> {
  const stop = new AbortController();
  const elector = makeElector(name, memory, labels);
  candidacies.set(name, { elector, stop });
  // Rejects only when it was told to stop.
  await elector.acquire(stop.signal).catch(() => undefined);
  report({ kind: 'acquired', name, isLeading: elector.isLeading });
}

/** The main thread has made sure that the last mutation has ended. */
async function release(name: string): Promise<void> {
  await candidacies.get(name)?.elector.release(() => Promise.resolve());
  report({ kind: 'released', name });
}

async function raise(name: string, above: bigint): Promise<void> {
  const why = await candidacies.get(name)?.elector.raiseAbove(above);
  report({ kind: 'raised', name, above, why });
}

async function obey(order: LeaseOrder): Promise<void> {
  switch (order.kind) {
    case 'acquire':
      return acquire(order.name, order.fence, order.labels);
    case 'stop-acquiring':
      return candidacies.get(order.name)?.stop.abort(new Error('stop requested'));
    case 'release':
      return release(order.name);
    case 'raise':
      return raise(order.name, order.above);
    case 'credentials':
      return endpoint.report(order.credentials, order.url);
    case 'no-credentials':
      return endpoint.fail(order.why);
  }
}

// What is thrown here ends the thread, and with it the leaderships: nothing is expected to.
port.on('message', (order: LeaseOrder) => void obey(order));
