import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join, normalize, relative } from 'node:path';
import { SourceTextModule } from 'node:vm';

import { describe, expect, test } from '@jest/globals';

import type { Driver } from '../driver/driver.ts';
import type { MachineDriver } from '../driver/gated-driver.ts';
import type { Writer } from '../kube/client/client.ts';
import type { Transport } from '../kube/client/transport.ts';

/*
 * That nothing is written to an API server and nothing is asked of a provider past the gate follows from who can get at what:
 *
 *  1. Only a few modules of the manager can open a connection at all (`fetch` and the like are lint errors in pkg/).
 *  2. A Transport reads for anyone who holds it; to mutate takes a key that only the gated writer and the Lease client import, and it
 *     refuses a mutation that is not admitted, unless it is of a Lease (test/integration/kube-client.test.ts).
 *  3. Only the operator can make a writer, a driver's connection or a gate, and hands them out behind interfaces that the
 *     raw ones do not fit; the runtimes of IronCore's pools are opened by its world, behind a gate of the operator.
 *
 * The graph is that of the imports that exist at run time, as the engine itself finds them in the code without its types.
 */
const ROOT = join(import.meta.dirname, '../..');
/** `machinist run`, which the original's two programs are thin entries to; the other commands are programs of their users. */
const ENTRY = 'cmd/machinist/run.ts';
/** The thread of its Leases, which is loaded by its path. */
const LEASE_THREAD = 'pkg/kube/leader/lease-thread-main.ts';

/** Packages and parts of Node with which a process can reach another one. */
const REACHES_OUT =
  /^(?:undici|bottleneck|nice-grpc.*|@grpc\/.*|@kubernetes\/client-node.*|(?:node:)?(?:https?|http2|net|tls|dgram|quic|child_process|cluster|worker_threads|inspector|wasi|module|vm))$/;

interface Module {
  /** Files of this project. */
  readonly files: readonly string[];
  /** Everything else. */
  readonly packages: readonly string[];
}

const known = new Map<string, Module>();

/** What a file imports at run time, also lazily. */
function moduleAt(file: string): Module {
  const before = known.get(file);
  if (before !== undefined) return before;
  const code = stripTypeScriptTypes(readFileSync(join(ROOT, file), 'utf8'));
  const { moduleRequests } = new SourceTextModule(code, { identifier: file });
  const specifiers = [...moduleRequests.map(({ specifier }) => specifier), ...lazyImports(file, code)];
  const module = {
    files: specifiers.filter((text) => text.startsWith('.')).map((text) => normalize(join(file, '..', text))),
    packages: specifiers.filter((text) => !text.startsWith('.')),
  };
  known.set(file, module);
  return module;
}

/** Of `import(…)` only constant names are understood; anything else fails the test. */
function lazyImports(file: string, code: string): string[] {
  return [...code.matchAll(/\bimport\s*\(\s*(?:'([^']*)'\s*\))?/g)].map(([text, specifier]) => {
    if (specifier === undefined) throw new Error(`${file}: ${text}… imports nobody knows what`);
    return specifier;
  });
}

/** All files that are loaded when these are. */
function loadedBy(entries: readonly string[]): ReadonlySet<string> {
  const loaded = new Set<string>();
  const left = [...entries];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    if (loaded.has(file)) continue;
    loaded.add(file);
    left.push(...moduleAt(file).files);
  }
  return loaded;
}

/** Sources of folders, tests aside. */
function sourcesOf(...folders: readonly string[]): string[] {
  return folders
    .flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: ROOT }))
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => relative(ROOT, join(ROOT, file)));
}

const manager = loadedBy([ENTRY, LEASE_THREAD]);

/** The files of the manager that import `file`. */
function importersOf(file: string): string[] {
  return [...manager].filter((one) => moduleAt(one).files.includes(file)).toSorted();
}

describe('a manager', () => {
  test('is what its entry point loads', () => {
    expect([...manager]).toContain('pkg/operator/operator.ts');
    expect(manager.size).toBeGreaterThan(200);
  });

  test('can open connections in these places only', () => {
    const places = [...manager].flatMap((file) =>
      moduleAt(file)
        .packages.filter((name) => REACHES_OUT.test(name))
        .map((name) => `${file} ${name}`),
    );

    expect(places.toSorted()).toEqual([
      'pkg/autoscaler/grpc-server.ts @grpc/grpc-js', // listens
      'pkg/autoscaler/open-port.ts @grpc/grpc-js',
      'pkg/autoscaler/rpc-error.ts nice-grpc', // its errors
      'pkg/autoscaler/selective-listener.ts @grpc/grpc-js', // listens
      'pkg/autoscaler/selective-listener.ts node:http2', // tells clients to go
      'pkg/base/clock/throttle.ts bottleneck', // can use Redis; here it only counts
      'pkg/driver/grpc/client.ts nice-grpc',
      'pkg/driver/grpc/connection.ts @grpc/grpc-js',
      'pkg/driver/grpc/connection.ts nice-grpc',
      'pkg/driver/grpc/private-socket.ts node:net', // asks whether somebody listens
      'pkg/driver/grpc/reloaded-channel-credentials.ts @grpc/grpc-js',
      'pkg/driver/grpc/reloaded-server-credentials.ts @grpc/grpc-js',
      'pkg/driver/grpc/reloaded-server-credentials.ts node:tls', // checks certificates
      'pkg/driver/grpc/transport-error.ts nice-grpc', // its errors
      'pkg/health/server.ts node:http', // listens
      'pkg/kube/client/config.ts @kubernetes/client-node/dist/config.js', // reads kubeconfigs
      'pkg/kube/client/config.ts node:module',
      'pkg/kube/client/credential-plugin.ts node:child_process', // the programs that a kubeconfig names
      'pkg/kube/client/dispatchers.ts node:tls',
      'pkg/kube/client/dispatchers.ts undici',
      'pkg/kube/leader/lease-thread-main.ts node:worker_threads', // what it is started with
      'pkg/kube/leader/lease-thread.ts node:worker_threads', // starts it
      'pkg/operator/config/autoscaler.ts node:net', // what is an address
      'pkg/status-page/status-page.ts node:net', // the same
      'pkg/status-page/web-files.ts node:module', // takes types away
      'pkg/worlds/ironcore/runtime/client.ts nice-grpc',
    ]);
  });

  test.each([
    // The hands: what opens connections to API servers, and what may mutate through them.
    { file: 'pkg/kube/client/dispatchers.ts', by: ['pkg/kube/client/transport.ts'] },
    { file: 'pkg/kube/client/transport.ts', by: ['pkg/kube/leader/lease-thread-main.ts', 'pkg/operator/clusters.ts'] },
    {
      file: 'pkg/kube/client/mutate.ts',
      by: ['pkg/kube/client/gated-writer.ts', 'pkg/kube/client/lease-client.ts', 'pkg/kube/client/transport.ts'],
    },
    { file: 'pkg/kube/client/gated-writer.ts', by: ['pkg/operator/clusters.ts'] },
    {
      file: 'pkg/kube/client/lease-client.ts',
      by: ['pkg/kube/leader/lease-thread-main.ts', 'pkg/operator/election.ts'],
    },
    // The drivers.
    {
      file: 'pkg/driver/grpc/connection.ts',
      by: ['pkg/driver/grpc/client.ts', 'pkg/worlds/ironcore/runtime/client.ts'],
    },
    { file: 'pkg/driver/grpc/client.ts', by: ['pkg/operator/drivers.ts'] },
    { file: 'pkg/driver/gated-driver.ts', by: ['pkg/operator/drivers.ts'] },
    // The runtimes of IronCore.
    { file: 'pkg/worlds/ironcore/runtime/client.ts', by: ['pkg/worlds/ironcore/world.ts'] },
    { file: 'pkg/worlds/ironcore/runtime/gated-runtime.ts', by: ['pkg/worlds/ironcore/world.ts'] },
    // The gates. The one that is always open is for Events, which only report.
    { file: 'pkg/kube/gate/leader-gate.ts', by: ['pkg/operator/election.ts'] },
    {
      file: 'pkg/kube/gate/fence.ts',
      by: ['pkg/kube/leader/lease-thread-main.ts', 'pkg/operator/election.ts'],
    },
  ])('has $file used by $by alone', ({ file, by }) => {
    expect(manager).toContain(file);
    expect(importersOf(file)).toEqual(by);
  });

  test('does not contain any driver: those are processes of their own', () => {
    expect(
      [...manager].filter((file) => /^(?:pkg\/drivers|packages\/providers|pkg\/worlds\/[^/]*\/driver)\//.test(file)),
    ).toEqual([]);
  });
});

describe('what decides', () => {
  test('loads nothing that could reach an API server or a provider by itself', () => {
    const deciding = sourcesOf(
      'pkg/controllers',
      'pkg/worlds/*/controllers',
      'pkg/drain',
      'pkg/work/reconcile',
      'pkg/work/activity',
      'pkg/kube/events',
      'pkg/kube/targets',
    );
    const loaded = [...loadedBy(deciding)];

    const hands = ['dispatchers', 'transport', 'mutate', 'gated-writer', 'lease-client'].map(
      (name) => `pkg/kube/client/${name}.ts`,
    );
    expect(deciding.length).toBeGreaterThan(100);
    const isHand = (file: string): boolean =>
      hands.includes(file) || file.startsWith('pkg/driver/grpc/') || file === 'pkg/worlds/ironcore/runtime/client.ts';
    expect(loaded.filter(isHand)).toEqual([]);
    expect(loaded.flatMap((file) => moduleAt(file).packages.filter((name) => REACHES_OUT.test(name)))).toEqual([]);
  });

  test('cannot be handed a raw connection or a raw driver by mistake', () => {
    // Checked by the compiler: each is `never` when the raw one fits, and then this file does not compile.
    const writer: Transport extends Writer ? never : 'does not fit' = 'does not fit';
    const driver: Driver extends MachineDriver ? never : 'does not fit' = 'does not fit';

    expect([writer, driver]).toEqual(['does not fit', 'does not fit']);
  });
});
