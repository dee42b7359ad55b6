import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { describe, expect, jest, test } from '@jest/globals';
import {
  createServer,
  ServerError,
  Status,
  type CallContext,
  type Server,
  type ServiceImplementation,
} from 'nice-grpc';

import { classOf } from '../../../test/drivers/requests.ts';
import { SystemClock } from '../../base/clock/system-clock.ts';
import { DriverError } from '../error.ts';
import type { Capabilities } from '../driver.ts';
import { FencingGuard, type FencingRecord } from '../fencing.ts';
import { parseDriverAddress } from '../grpc/address.ts';
import { HealthDefinition } from '../grpc/gen/grpc/health/v1/health.ts';
import {
  DriverServiceDefinition,
  type Call,
  type Machine,
  type MachineClass,
} from '../grpc/gen/machine/driver/v1/driver.ts';
import { HealthService } from '../grpc/health.ts';
import { toListedMachine, toVirtualMachine } from '../grpc/messages.ts';
import { driverService, EMPTY_ANSWER, failedAnswer } from '../grpc/service.ts';
import { SimCloud } from '../../../packages/providers/sim/cloud.ts';
import { SimDriver } from '../../../packages/providers/sim/driver.ts';
import { Faults } from '../../../packages/providers/sim/faults.ts';
import { DEFAULT_SIM_SETTINGS } from '../../../packages/providers/sim/settings.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { RULES } from './rules/index.ts';
import type { VerifyOptions } from './options.ts';
import { UnusableDriver, Verification, verify, type RuleResult } from './verify.ts';

const NO_LATENCY = { create: 2, initialize: 0, status: 0, delete: 2, list: 0, join: 0 };
const PASSWORD = 'correct-horse-battery';
const never = new AbortController().signal;

// Dozens of drivers are tried side by side, on hosts that others share.
jest.setTimeout(600_000);

type Secret = Readonly<Record<string, Uint8Array>>;

const toBase64 = (value: Uint8Array): string => Buffer.from(value).toString('base64');
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const vmAnswer = ({ providerID }: { readonly providerID: string }, nodeName = 'x') => ({
  ...EMPTY_ANSWER,
  vm: toVirtualMachine({ providerID, nodeName, addresses: [] }),
});
const notFound = failedAnswer(new DriverError('NotFound', 'there is no VM'));
const aborted = failedAnswer(new DriverError('Aborted', 'the VM is being deleted'));
const internal = failedAnswer(new DriverError('Internal', 'in a muddle'));

type Service = ServiceImplementation<DriverServiceDefinition>;

/** What a deviation changes of a driver that keeps the contract; made anew with each start. */
type Deviation = (right: Service, world: World) => Partial<Service>;

/** A driver of a simulated cloud that checks its password, and may deviate. Outlived by its cloud and its tokens. */
class World implements AsyncDisposable {
  readonly clock = new SystemClock();
  readonly cloud = new SimCloud({ clock: this.clock, journal: undefined });
  readonly health = new HealthService();
  tokens: readonly FencingRecord[] = [];
  /** How often it was started. */
  starts = 0;
  isStopping = false;
  /** The rule that is tried, for deviations that would be a matter of speed. */
  rule = '';
  /** Machines whose creation had begun when the driver was stopped. */
  readonly cutOff = new Set<string>();
  /** The deviation waits for the stop, and the stop for it. */
  mayCutOff = false;
  socket = '';
  #directory = '';
  #server: Server | undefined;
  readonly #deviation: Deviation;
  readonly #capabilities: Partial<Capabilities>;

  constructor(deviation: Deviation, capabilities: Partial<Capabilities> = {}) {
    this.#deviation = deviation;
    this.#capabilities = capabilities;
  }

  async start(): Promise<this> {
    if (this.#directory === '') this.#directory = await mkdtemp(path.join(tmpdir(), 'verify-'));
    this.socket = path.join(this.#directory, 's');
    this.starts++;
    this.isStopping = false;
    const store = {
      load: () => Promise.resolve(this.tokens),
      save: (records: readonly FencingRecord[]) => {
        this.tokens = structuredClone(records);
        return Promise.resolve();
      },
    };
    const { clock, cloud } = this;
    const settings = { ...DEFAULT_SIM_SETTINGS, latencyMs: NO_LATENCY };
    const driver = new SimDriver({ cloud, faults: new Faults('x'), clock, settings, capabilities: this.#capabilities });
    const fencing = await FencingGuard.open({ clock, store });
    const right = driverService({ driver, fencing, clock, log: silentLogger });
    const careful: Service = {
      getCapabilities: (request, context) => right.getCapabilities(request, context),
      createMachine: (request, context) => {
        const password = new TextDecoder().decode(request.secretData['password']);
        if (password === PASSWORD) return right.createMachine(request, context);
        return Promise.resolve(failedAnswer(new DriverError('Unauthenticated', 'this is not the password')));
      },
      initializeMachine: (request, context) => right.initializeMachine(request, context),
      getMachineStatus: (request, context) => right.getMachineStatus(request, context),
      deleteMachine: (request, context) => right.deleteMachine(request, context),
      listMachines: (request, context) => right.listMachines(request, context),
      getVolumeIDs: (request, context) => right.getVolumeIDs(request, context),
    };
    this.#server = createServer();
    this.#server.add(DriverServiceDefinition, { ...careful, ...this.#deviation(careful, this) });
    this.#server.add(HealthDefinition, this.health);
    await this.#server.listen(`unix://${this.socket}`);
    return this;
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    this.#server?.forceShutdown();
    await rm(this.socket, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Makes a VM of a machine that no driver knows of. */
  makeAnother({ machine, call }: { machine: Machine | undefined; call: Call | undefined }): { providerID: string } {
    const { name = '', namespace = '', uid: machineUID = '' } = machine ?? {};
    return this.cloud.plant({
      machineName: name,
      namespace,
      machineUID,
      className: 'test-class',
      cluster: call?.cluster ?? '',
    });
  }

  /** How the driver is tried. */
  get options(): VerifyOptions {
    const machineClass = classOf('test', { zone: 'zone-1' });
    return {
      address: parseDriverAddress(`unix://${this.socket}`),
      machineClass,
      secretData: { password: bytes(PASSWORD), userData: bytes('#!/bin/sh') },
      badClass: { ...machineClass, providerSpec: { zone: 1 } },
      badSecretData: { password: bytes('wrong-horse-battery'), userData: bytes('#!/bin/sh') },
      restart: async () => {
        if (this.rule === 'restart-during-a-creation' && this.mayCutOff) await until(() => this.cutOff.size > 0);
        await this.stop();
        await this.start();
      },
      makeUntagged: ({ name, className }) => {
        this.cloud.plant({ machineName: name, namespace: '', className });
        return Promise.resolve();
      },
      clock: this.clock,
      ruleMs: 30_000,
      lagMs: 2_000,
    };
  }

  /** Tries every rule. */
  async verify(): Promise<readonly RuleResult[]> {
    using verification = await Verification.begin(this.options, never);
    const results: RuleResult[] = [];
    for (const rule of RULES) {
      this.rule = rule.name;
      results.push(await verification.try(rule, never));
    }
    return results;
  }
}

const RULE_MS = 300_000;

/** The time of the first rule passes when the test says so. */
class RuleClock extends SystemClock {
  #end: (() => void) | undefined;

  override schedule(delayMs: number, run: () => void): () => void {
    if (delayMs !== RULE_MS || this.#end !== undefined) return super.schedule(delayMs, run);
    this.#end = run;
    return () => undefined;
  }

  endRule(): void {
    this.#end?.();
  }
}

/** For what the deviations of one process wait for; a second is more than any of it takes. */
async function until(condition: () => boolean): Promise<void> {
  for (let left = 1_000; left > 0 && !condition(); left--) await sleep(1);
}

async function all(results: AsyncGenerator<RuleResult>): Promise<readonly RuleResult[]> {
  const list: RuleResult[] = [];
  for await (const result of results) list.push(result);
  return list;
}

const failedOf = (results: readonly RuleResult[]): readonly string[] =>
  results.filter(({ outcome }) => outcome === 'failed').map(({ rule, reason }) => `${rule.name}: ${reason}`);

const hangs = async (timeoutMs: number, { signal }: CallContext): Promise<void> => {
  if (timeoutMs > 100) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
};
const msOf = (call: Call | undefined): number =>
  Number(call?.timeout?.seconds ?? 0n) * 1_000 + (call?.timeout?.nanos ?? 0) / 1e6;

/** One driver for each rule, which deviates in this alone. */
const DEVIATIONS: Readonly<Record<string, Deviation>> = {
  health: (_right, { health }) => {
    health.stop();
    return {};
  },
  'named-methods': () => ({
    initializeMachine: () => Promise.reject(new ServerError(Status.UNIMPLEMENTED, 'not here')),
  }),
  'foreign-volume': () => ({
    getVolumeIDs: ({ volumeSpecs }) => Promise.resolve({ ...EMPTY_ANSWER, volumeIds: volumeSpecs.map(() => 'vol-1') }),
  }),
  creation: (right) => ({
    createMachine: async (request, context) => nameless(await right.createMachine(request, context)),
    getMachineStatus: async (request, context) => nameless(await right.getMachineStatus(request, context)),
  }),
  capacity: (right) => ({
    createMachine: async (request, context) => {
      const answer = await right.createMachine(request, context);
      return answer.vm === undefined ? answer : { ...answer, vm: { ...answer.vm, capacity: { memory: '8 GB' } } };
    },
  }),
  'creation-repeated': (right, world) => {
    const shown = new Set<string>();
    return {
      getMachineStatus: async (request, context) => {
        const answer = await right.getMachineStatus(request, context);
        const isTagged = world.cloud.get(answer.vm?.providerId ?? '')?.machineUID !== undefined;
        if (isTagged) shown.add(request.machine?.uid ?? '');
        return answer;
      },
      createMachine: async (request, context) => {
        if (!shown.has(request.machine?.uid ?? '')) return await right.createMachine(request, context);
        return vmAnswer(world.makeAnother(request));
      },
    };
  },
  'creations-at-once': (right, world) => {
    const running = new Map<string, number>();
    return {
      createMachine: async (request, context) => {
        const uid = request.machine?.uid ?? '';
        const before = running.get(uid) ?? 0;
        running.set(uid, before + 1);
        if (before > 0) return vmAnswer(world.makeAnother(request));
        try {
          await until(() => world.rule !== 'creations-at-once' || (running.get(uid) ?? 0) > 1);
          return await right.createMachine(request, context);
        } finally {
          running.delete(uid);
        }
      },
    };
  },
  'creation-after-a-lost-answer': (right, world) => {
    const lost = new Set<string>();
    return {
      createMachine: async (request, context) => {
        const uid = request.machine?.uid ?? '';
        await until(() => world.rule !== 'creation-after-a-lost-answer' || context.signal.aborted || lost.has(uid));
        // It goes on, and the next one does not look for what it made.
        const isLost = context.signal.aborted && !world.isStopping;
        if (!isLost && !lost.has(uid)) return await right.createMachine(request, context);
        lost.add(uid);
        return vmAnswer(world.makeAnother(request));
      },
    };
  },
  'untagged-vm': (right, world) => ({
    getMachineStatus: async (request, context) => {
      const answer = await right.getMachineStatus(request, context);
      if (world.rule !== 'untagged-vm') return answer;
      return world.cloud.get(answer.vm?.providerId ?? '')?.machineUID === undefined ? notFound : answer;
    },
  }),
  'bad-class': (right) => ({
    createMachine: async (request, context) => {
      const answer = await right.createMachine(request, context);
      return answer.failure?.code === 3
        ? { ...answer, failure: { ...answer.failure, message: 'something is wrong' } }
        : answer;
    },
  }),
  'refused-creation-leaves-nothing': (right, world) => ({
    createMachine: async (request, context) => {
      const answer = await right.createMachine(request, context);
      if (answer.failure?.code === 3) world.makeAnother(request);
      return answer;
    },
  }),
  'bad-secret': (right) => ({
    createMachine: (request, context) =>
      right.createMachine({ ...request, secretData: { ...request.secretData, password: bytes(PASSWORD) } }, context),
  }),
  'status-by-name-and-by-id': (right) => ({
    getMachineStatus: async (request, context) =>
      request.machine?.providerId === '' ? await right.getMachineStatus(request, context) : notFound,
  }),
  'status-of-an-unknown-machine': (right) => ({
    getMachineStatus: async (request, context) => {
      const answer = await right.getMachineStatus(request, context);
      if (answer.failure?.code === 5) throw new ServerError(Status.NOT_FOUND, 'there is none');
      return answer;
    },
  }),
  'status-of-another-uid': (right, { cloud }) => ({
    getMachineStatus: async (request, context) => {
      const [vm] = request.machine?.uid === 'uid-other' ? cloud.named(request.machine.name) : [];
      return vm === undefined ? await right.getMachineStatus(request, context) : vmAnswer(vm);
    },
  }),
  'status-of-another-cluster': (right) => ({
    getMachineStatus: (request, context) =>
      right.getMachineStatus({ ...request, call: ofFirstCluster(request.call) }, context),
  }),
  'status-by-a-foreign-id': (right, { cloud }) => ({
    getMachineStatus: async (request, context) => {
      const vm = cloud.get(request.machine?.providerId ?? '');
      return vm?.machineUID !== undefined
        ? vmAnswer(vm, vm.machineName)
        : await right.getMachineStatus(request, context);
    },
  }),
  'untagged-vm-by-a-foreign-id': (right, { cloud }) => ({
    deleteMachine: async (request, context) => {
      const vm = cloud.get(request.machine?.providerId ?? '');
      if (vm === undefined || vm.machineUID !== undefined) return await right.deleteMachine(request, context);
      cloud.remove(vm.providerID, 'deleted');
      return EMPTY_ANSWER;
    },
  }),
  'deletion-by-a-foreign-id': (right, { cloud }) => ({
    deleteMachine: async (request, context) => {
      const { providerId = '', name, uid } = request.machine ?? {};
      const vm = uid === '' ? undefined : cloud.get(providerId);
      if (vm?.machineUID === undefined || vm.machineName === name) return await right.deleteMachine(request, context);
      cloud.remove(vm.providerID, 'deleted');
      return EMPTY_ANSWER;
    },
  }),
  deletion: (right) => {
    const once = new Set<string>();
    return {
      deleteMachine: async (request, context) => {
        const { uid = '', providerId = '' } = request.machine ?? {};
        if (uid === '' || providerId === '' || once.has(uid)) return await right.deleteMachine(request, context);
        once.add(uid);
        return EMPTY_ANSWER;
      },
    };
  },
  'deletion-by-name': (right) => ({
    deleteMachine: async (request, context) =>
      request.machine?.providerId === '' && request.call?.fencingToken === 0n
        ? notFound
        : await right.deleteMachine(request, context),
  }),
  'deletion-repeated': (right) => {
    const deleted = new Set<string>();
    return {
      deleteMachine: async (request, context) => {
        const { uid = '', providerId = '' } = request.machine ?? {};
        const answer = await right.deleteMachine(request, context);
        if (answer.failure === undefined) deleted.add(uid);
        return answer.failure?.code === 5 && providerId !== '' && deleted.has(uid) ? internal : answer;
      },
    };
  },
  'deletions-at-once': (right, world) => {
    const running = new Map<string, number>();
    return {
      deleteMachine: async (request, context) => {
        const uid = request.machine?.uid ?? '';
        const before = running.get(uid) ?? 0;
        running.set(uid, before + 1);
        if (before > 0) return internal;
        try {
          await until(
            () =>
              world.rule !== 'deletions-at-once' ||
              world.cloud.named(request.machine?.name ?? '').length === 0 ||
              (running.get(uid) ?? 0) > 1,
          );
          return await right.deleteMachine(request, context);
        } finally {
          running.delete(uid);
        }
      },
    };
  },
  'deletion-of-another-uid': (right, { cloud }) => ({
    deleteMachine: async (request, context) => {
      const [vm] = request.machine?.uid === 'uid-other' ? cloud.named(request.machine.name) : [];
      if (vm === undefined) return await right.deleteMachine(request, context);
      cloud.remove(vm.providerID, 'deleted');
      return EMPTY_ANSWER;
    },
  }),
  'deletion-without-machine': (right, { cloud }) => ({
    deleteMachine: async (request, context) => {
      const { uid, name = '' } = request.machine ?? {};
      if (uid === '') for (const vm of cloud.named(name)) cloud.remove(vm.providerID, 'deleted');
      return await right.deleteMachine(request, context);
    },
  }),
  list: (right) => ({
    listMachines: async (request, context) => {
      const answer = await right.listMachines(request, context);
      return { ...answer, machines: answer.machines.map((vm) => ({ ...vm, machineUid: '' })) };
    },
  }),
  'list-in-pages': (right) => ({
    listMachines: async (request, context) => {
      const answer = await right.listMachines(request, context);
      return request.pageSize > 0 && request.pageToken !== '' ? { ...answer, machines: [] } : answer;
    },
  }),
  'list-of-another-cluster': (right) => ({
    listMachines: (request, context) => right.listMachines({ ...request, call: ofFirstCluster(request.call) }, context),
  }),
  'list-of-another-namespace': (right) => ({
    listMachines: (request, context) =>
      right.listMachines({ ...request, machineClass: renamed(request.machineClass, 'namespace') }, context),
  }),
  'list-of-another-class': (right) => ({
    listMachines: (request, context) =>
      right.listMachines({ ...request, machineClass: renamed(request.machineClass, 'name') }, context),
  }),
  'time-of-a-creation': (right) => ({
    createMachine: async (request, context) => {
      await hangs(msOf(request.call), context);
      return await right.createMachine(request, context);
    },
  }),
  'time-of-a-read': (right) => ({
    getMachineStatus: async (request, context) => {
      await hangs(msOf(request.call), context);
      return await right.getMachineStatus(request, context);
    },
  }),
  'time-of-a-deletion': (right) => ({
    deleteMachine: async (request, context) => {
      await hangs(msOf(request.call), context);
      return await right.deleteMachine(request, context);
    },
  }),
  'old-token': (right, { starts }) => ({
    deleteMachine: (request, context) =>
      right.deleteMachine(starts > 1 ? request : { ...request, call: withToken(request.call, 0n) }, context),
  }),
  'old-token-of-a-creation': (right) => ({
    createMachine: (request, context) =>
      right.createMachine(
        request.call?.fencingToken === 6n ? { ...request, call: withToken(request.call, 0n) } : request,
        context,
      ),
  }),
  'highest-token-is-told': (right) => ({
    deleteMachine: async (request, context) => {
      const answer = await right.deleteMachine(request, context);
      return answer.failure?.code === 9 ? { ...answer, failure: { ...answer.failure, fencingToken: 0n } } : answer;
    },
  }),
  'tokens-of-another-cluster': (right) => {
    let highest = 0n;
    return {
      createMachine: async (request, context) => {
        const token = request.call?.fencingToken ?? 0n;
        if (token > highest) highest = token;
        if (token > 0n && token < highest) {
          return failedAnswer(new DriverError('FailedPrecondition', 'old', { highestToken: highest }));
        }
        return await right.createMachine(request, context);
      },
    };
  },
  'no-leader-election': (right, { tokens }) => {
    const known = new Set(tokens.map(({ cluster }) => cluster));
    const refusal = failedAnswer(new DriverError('FailedPrecondition', 'old', { highestToken: 7n }));
    const isRefused = (call: Call | undefined): boolean => {
      if ((call?.fencingToken ?? 0n) > 0n) known.add(call?.cluster ?? '');
      return call?.fencingToken === 0n && known.has(call.cluster);
    };
    return {
      createMachine: async (request, context) =>
        isRefused(request.call) ? refusal : await right.createMachine(request, context),
      deleteMachine: async (request, context) =>
        isRefused(request.call) ? refusal : await right.deleteMachine(request, context),
    };
  },
  restart: (_right, { cloud }) => {
    for (const { providerID } of cloud.all()) cloud.remove(providerID, 'vanished');
    return {};
  },
  'restart-during-a-creation': (right, world) => ({
    createMachine: async (request, context) => {
      const uid = request.machine?.uid ?? '';
      const isCutOff = world.rule === 'restart-during-a-creation' && world.cutOff.size === 0;
      if (!isCutOff && !world.cutOff.has(uid)) return await right.createMachine(request, context);
      world.cutOff.add(uid);
      if (isCutOff) await until(() => world.isStopping);
      return vmAnswer(world.makeAnother(request));
    },
  }),
  'restart-keeps-tokens': (right, world) => ({
    createMachine: async (request, context) => {
      const answer = await right.createMachine(request, context);
      world.tokens = [];
      return answer;
    },
  }),
  secrets: (right) => ({
    createMachine: async (request, context) => {
      const answer = await right.createMachine(request, context);
      const password = new TextDecoder().decode(request.secretData['password']);
      return answer.failure?.code === 16
        ? { ...answer, failure: { ...answer.failure, message: `wrong: ${password}` } }
        : answer;
    },
  }),
};

type Named = { readonly vm?: { readonly nodeName?: string } | undefined };
const nameless = <R extends Named>(answer: R): R =>
  answer.vm === undefined ? answer : { ...answer, vm: { ...answer.vm, nodeName: '' } };
const ofFirstCluster = (call: Call | undefined): Call | undefined =>
  call && { ...call, cluster: call.cluster.replace('-other', '') };
const withToken = (call: Call | undefined, fencingToken: bigint): Call | undefined => call && { ...call, fencingToken };
const renamed = <C extends { json: Uint8Array }>(
  machineClass: C | undefined,
  member: 'name' | 'namespace',
): C | undefined => {
  if (machineClass === undefined) return undefined;
  const object = JSON.parse(new TextDecoder().decode(machineClass.json)) as { metadata: Record<string, string> };
  object.metadata[member] = object.metadata[member]?.replace('-other', '') ?? '';
  return { ...machineClass, json: bytes(JSON.stringify(object)) };
};

describe('verification', () => {
  test.concurrent('finds nothing wrong with a driver that keeps the contract, and leaves nothing', async () => {
    await using world = await new World(() => ({})).start();

    const results = await world.verify();

    expect(results.map(({ outcome }) => outcome)).toEqual(RULES.map(() => 'passed'));
    expect(world.cloud.all()).toEqual([]);
  });

  test.concurrent('does not ask for what a driver need not have', async () => {
    const capabilities = { methods: new Set([]), idempotentCreate: false };
    await using world = await new World(() => ({}), capabilities).start();

    const results = await world.verify();

    expect(failedOf(results)).toEqual([]);
    const skipped = results
      .filter(({ outcome }) => outcome === 'not applicable')
      .map(({ rule, reason }) => `${rule.name}: ${reason}`);
    expect(skipped).toContain('list: GetCapabilities does not report ListMachines');
    expect(skipped).toContain('creations-at-once: GetCapabilities does not report idempotent_create');
    expect(world.cloud.all()).toEqual([]);
  });

  test.concurrent.each(RULES.map(({ name }) => name))(
    'finds a driver that deviates in %s alone, in this rule alone, and leaves nothing',
    async (name) => {
      const deviation = DEVIATIONS[name];
      if (deviation === undefined) throw new Error(`no driver breaks ${name}`);
      await using world = await new World(deviation).start();
      world.mayCutOff = name === 'restart-during-a-creation';

      const results = await world.verify();

      expect(failedOf(results)).toEqual([expect.stringMatching(new RegExp(`^${name}: .{20}`))]);
      // A driver that has forgotten its VM may have left it.
      expect(results.flatMap((one) => one.left)).toHaveLength(name === 'restart' ? 1 : 0);
      expect(world.cloud.all()).toEqual([]);
    },
  );

  test.concurrent('finds a driver that lists something without provider_id, such as a port, beside the VMs', async () => {
    const port = { providerID: '', machineName: 'port', machineUID: undefined };
    await using world = await new World((right) => ({
      listMachines: async (request, context) => {
        const answer = await right.listMachines(request, context);
        return { ...answer, machines: [...answer.machines, toListedMachine(port)] };
      },
    })).start();
    using verification = await Verification.begin(world.options, never);

    const results = await all(verify(verification, never, ['list']));

    expect(failedOf(results)).toEqual([expect.stringMatching(/^list: .*an entry without provider_id/)]);
  });

  test.concurrent('takes a deletion that goes on after its call, and ends between two calls, for done', async () => {
    await using world = await new World((right, { cloud }) => ({
      deleteMachine: async (request, context) => {
        const [vm] = cloud.named(request.machine?.name ?? '');
        if (vm === undefined) return await right.deleteMachine(request, context);
        cloud.remove(vm.providerID, 'deleted');
        return aborted;
      },
    })).start();
    using verification = await Verification.begin(world.options, never);

    const results = await all(verify(verification, never, ['creation']));

    expect(results.map(({ outcome, left }) => ({ outcome, left }))).toEqual([{ outcome: 'passed', left: [] }]);
    expect(world.cloud.all()).toEqual([]);
  });

  test.concurrent('names a VM that a driver finds neither by name nor in a list, and deletes it by its id', async () => {
    await using world = await new World((right) => ({
      getMachineStatus: async (request, context) =>
        request.machine?.providerId === '' ? notFound : await right.getMachineStatus(request, context),
      deleteMachine: async (request, context) =>
        request.machine?.providerId === '' ? notFound : await right.deleteMachine(request, context),
      listMachines: async () => await Promise.resolve(EMPTY_ANSWER),
    })).start();
    using verification = await Verification.begin(world.options, never);

    const results = await all(verify(verification, never, ['creation']));

    expect(results.flatMap(({ left }) => left)).toEqual([]);
    expect(world.cloud.all()).toEqual([]);
  });

  test.concurrent('deletes a second VM of a machine, which only the list shows', async () => {
    let first = '';
    const ofFirst = <R extends { readonly machine: Machine | undefined }>(request: R): R =>
      request.machine?.providerId === '' ? { ...request, machine: { ...request.machine, providerId: first } } : request;
    await using world = await new World((right, self) => ({
      createMachine: async (request, context) => {
        const answer = await right.createMachine(request, context);
        if (first === '') self.makeAnother(request);
        first = answer.vm?.providerId ?? first;
        return answer;
      },
      getMachineStatus: async (request, context) => await right.getMachineStatus(ofFirst(request), context),
      deleteMachine: async (request) => {
        const vm = self.cloud.get(ofFirst(request).machine?.providerId ?? '');
        if (vm === undefined) return await Promise.resolve(notFound);
        self.cloud.remove(vm.providerID, 'deleted');
        return EMPTY_ANSWER;
      },
    })).start();
    using verification = await Verification.begin(world.options, never);

    const results = await all(verify(verification, never, ['creation']));

    expect(results.flatMap(({ left }) => left)).toEqual([]);
    expect(world.cloud.all()).toEqual([]);
  });

  test.concurrent('says what is left by a driver that knows nothing of what it has made, and how it is found', async () => {
    await using world = await new World(() => ({
      getMachineStatus: async () => await Promise.resolve(notFound),
      deleteMachine: async () => await Promise.resolve(notFound),
      listMachines: async () => await Promise.resolve(EMPTY_ANSWER),
    })).start();
    using verification = await Verification.begin(world.options, never);

    const [result] = await all(verify(verification, never, ['creation']));

    const [vm] = world.cloud.all();
    expect(result?.left).toEqual([expect.stringContaining(`(provider ID ${vm?.providerID})`)]);
    expect(result?.left).toEqual([expect.stringContaining(`${vm?.namespace}/${vm?.machineName} with UID`)]);
  });

  test.concurrent('says what is left when it is interrupted', async () => {
    const interrupt = new AbortController();
    await using world = await new World((right) => ({
      createMachine: async (request, context) => {
        const answer = await right.createMachine(request, context);
        interrupt.abort(new Error('interrupted'));
        return answer;
      },
      deleteMachine: async () => await Promise.resolve(internal),
    })).start();
    using verification = await Verification.begin(world.options, never);

    const results = await all(verify(verification, interrupt.signal, ['creation', 'creation-repeated']));

    expect(results.map(({ left }) => left.length)).toEqual([1]);
  });

  test.concurrent('ends when the driver has died, and says what it had made', async () => {
    const world = await new World((right, self) => ({
      createMachine: async (request, context) => {
        const answer = await right.createMachine(request, context);
        setImmediate(() => void self.stop());
        return answer;
      },
    })).start();
    await using _world = world;
    using verification = await Verification.begin({ ...world.options, returnMs: 300 }, never);

    const results = await all(verify(verification, never, ['creation', 'creation-repeated', 'deletion']));

    expect(results.map(({ rule, outcome }) => `${rule.name} ${outcome}`)).toEqual(['creation failed']);
    expect(verification.end).toMatch(/GetCapabilities/);
    expect(results[0]?.left).toHaveLength(1);
    expect(results[0]?.left[0]).toContain(world.cloud.all()[0]?.machineName);
  });

  test.concurrent('goes on with a driver that has died and was started again, which removes what it had made', async () => {
    let isDead = false;
    await using world = await new World((right, self) => ({
      createMachine: async (request, context) => {
        const answer = await right.createMachine(request, context);
        if (isDead) return answer;
        isDead = true;
        await self.stop();
        void self.start();
        return answer;
      },
    })).start();
    using verification = await Verification.begin(world.options, never);

    const results = await all(verify(verification, never, ['creation', 'creation-repeated']));

    expect(results.map(({ outcome }) => outcome)).toEqual(['failed', 'passed']);
    expect(results.flatMap(({ left }) => left)).toEqual([]);
    expect(world.cloud.all()).toEqual([]);
  });

  test.concurrent('removes what the rule of the moment has made when it is interrupted', async () => {
    const interrupt = new AbortController();
    await using world = await new World((right) => ({
      listMachines: async (request, context) => {
        interrupt.abort(new Error('interrupted'));
        return await right.listMachines(request, context);
      },
    })).start();
    using verification = await Verification.begin(world.options, never);

    const results = all(verify(verification, interrupt.signal, ['creation-repeated']));

    await expect(results).rejects.toThrow('interrupted');
    expect(world.cloud.all()).toEqual([]);
  });

  test.concurrent('asks nothing more of a class that is wrong than what the contract says', async () => {
    const refusal = failedAnswer(new DriverError('InvalidArgument', 'zone: must be a string'));
    const isWrong = (machineClass: MachineClass | undefined): boolean =>
      new TextDecoder().decode(machineClass?.providerSpec) === '{"zone":1}';
    await using world = await new World((right) => ({
      listMachines: async (request, context) =>
        isWrong(request.machineClass) ? refusal : await right.listMachines(request, context),
      deleteMachine: async (request, context) =>
        isWrong(request.machineClass) ? refusal : await right.deleteMachine(request, context),
    })).start();
    using verification = await Verification.begin(world.options, never);

    const results = await all(verify(verification, never, ['bad-class', 'refused-creation-leaves-nothing']));

    expect(results.map(({ outcome, left }) => ({ outcome, left }))).toEqual([
      { outcome: 'passed', left: [] },
      { outcome: 'passed', left: [] },
    ]);
  });

  test.concurrent('says of each failure what was expected', async () => {
    const wrong = failedAnswer(new DriverError('Internal', 'nothing there'));
    await using world = await new World((right) => ({
      getMachineStatus: async (request, context) => {
        const answer = await right.getMachineStatus(request, context);
        return answer.failure?.code === 5 ? wrong : answer;
      },
    })).start();

    const reasons = failedOf(await world.verify());

    expect(reasons.length).toBeGreaterThan(1);
    const says = /^[a-z-]+: GetMachineStatus of .* returned Internal \(nothing there\); expected NotFound/;
    for (const reason of reasons) expect(reason).toMatch(says);
  });

  test.concurrent.each([
    { what: 'a value as it is', write: (secret: Secret) => new TextDecoder().decode(secret['password']) },
    { what: 'a value in base64', write: (secret: Secret) => toBase64(secret['password'] ?? new Uint8Array()) },
    { what: 'Buffers in JSON', write: (secret: Secret) => JSON.stringify(secret) },
    { what: 'numbers', write: (secret: Secret) => JSON.stringify([...(secret['password'] ?? [])]) },
    {
      what: 'Buffers behind a long text',
      write: (secret: Secret) => `${'x'.repeat(50_000)} ${JSON.stringify(secret)}`,
    },
  ])('finds a Secret that is repeated as $what', async ({ write }) => {
    await using world = await new World((right) => ({
      createMachine: async (request, context) => {
        const answer = await right.createMachine(request, context);
        return { ...answer, lastKnownState: write(request.secretData) };
      },
    })).start();
    using verification = await Verification.begin(world.options, never);

    const results = await all(verify(verification, never, ['creation', 'secrets']));

    expect(failedOf(results)).toEqual([expect.stringMatching(/^secrets: .* contains a value of the Secret/)]);
  });

  test.concurrent('tells what a rule waits for, and again', async () => {
    const lines: string[] = [];
    await using world = await new World((right) => ({
      createMachine: async (request, context) => {
        const isEnough = lines.filter((line) => line.includes('ECONNREFUSED')).length > 1;
        if (isEnough) return await right.createMachine(request, context);
        return failedAnswer(new DriverError('Unavailable', `ECONNREFUSED for ${PASSWORD}`));
      },
    })).start();
    const report = (line: string): void => void lines.push(line);
    using verification = await Verification.begin({ ...world.options, report, reportMs: 400 }, never);

    await all(verify(verification, never, ['creation']));

    const told = lines.filter((line) => line.includes('ECONNREFUSED'));
    const says =
      /^ {6}waiting, for up to \d+s \(--rule-timeout\): driver sim: CreateMachine returned Unavailable \(ECONNREFUSED for \[redacted\]\)$/;
    expect(lines[0]).toBe('RUN   creation');
    expect(told.length).toBeGreaterThan(1);
    for (const line of told) expect(line).toMatch(says);
  });

  test.concurrent.each([
    {
      what: 'an answer that came before',
      first: failedAnswer(new DriverError('Unavailable', `no route for ${PASSWORD}`)),
      says: 'waiting for the answer of CreateMachine; before it, CreateMachine returned Unavailable (no route for [redacted])',
    },
    { what: 'no answer at all', first: undefined, says: 'waiting for the answer of CreateMachine' },
  ])('tells of a rule that is ended while a call runs of $what', async ({ first, says }) => {
    let calls = first === undefined ? 1 : 0;
    const clock = new RuleClock();
    await using world = await new World((right) => ({
      createMachine: async (request, context) => {
        if (calls++ === 0) return first ?? EMPTY_ANSWER;
        clock.endRule();
        await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve()));
        return await right.createMachine(request, context);
      },
    })).start();
    using verification = await Verification.begin({ ...world.options, clock, ruleMs: RULE_MS }, never);

    const [result] = await all(verify(verification, never, ['creation']));

    expect(result?.reason).toBe(
      `the rule did not finish within 5m0s (--rule-timeout): ${says}; expected the rule to finish`,
    );
  });

  test.concurrent('proves nothing by a restart that has not ended the driver', async () => {
    await using world = await new World(() => ({})).start();
    using verification = await Verification.begin({ ...world.options, restart: () => Promise.resolve() }, never);
    const names = RULES.map(({ name }) => name).filter((name) => name.startsWith('restart'));

    const results = await all(verify(verification, never, names));

    const says =
      '--restart-command did not stop the driver: its connection was never lost; expected the command to restart the driver';
    expect(failedOf(results)).toEqual(names.map((name) => `${name}: ${says}`));
    expect(world.cloud.all()).toEqual([]);
  });

  test.concurrent('finds by its list alone what a refused creation has left', async () => {
    await using world = await new World((right, self) => ({
      createMachine: async (request, context) => {
        const answer = await right.createMachine(request, context);
        if (answer.failure?.code === 3) self.makeAnother(request);
        return answer;
      },
      getMachineStatus: () => Promise.resolve(notFound),
    })).start();
    using verification = await Verification.begin({ ...world.options, lagMs: 100 }, never);

    const results = await all(verify(verification, never, ['refused-creation-leaves-nothing']));

    const says =
      /^refused-creation-leaves-nothing: ListMachines still returns sim:\/\/\/.*; expected no VM of the machine$/;
    expect(failedOf(results)).toEqual([expect.stringMatching(says)]);
  });

  test.concurrent.each([
    { what: 'of a driver that refuses everything', isLost: false, left: [] },
    {
      what: 'unless the answer to a creation was lost',
      isLost: true,
      left: [expect.stringContaining('Unauthenticated (who are you?)')],
    },
  ])('says nothing of VMs that may be left $what', async ({ isLost, left }) => {
    const refused = failedAnswer(new DriverError('Unauthenticated', 'who are you?'));
    const refuse = () => Promise.resolve(refused);
    await using world = await new World(() => ({
      createMachine: () => (isLost ? Promise.reject(new ServerError(Status.INTERNAL, 'oh')) : refuse()),
      getMachineStatus: refuse,
      deleteMachine: refuse,
      listMachines: refuse,
    })).start();
    using verification = await Verification.begin(world.options, never);

    const [result] = await all(verify(verification, never, ['creation']));

    expect(result?.outcome).toBe('failed');
    expect(result?.left).toEqual(left);
  });

  test.concurrent('tells what it could not remove', async () => {
    await using world = await new World(() => ({ deleteMachine: () => Promise.resolve(internal) })).start();
    using verification = await Verification.begin(world.options, never);

    const [result] = await all(verify(verification, never, ['creation']));

    expect(result?.left).toEqual([
      expect.stringMatching(/^VM of machine shoot\/verify-.*Internal \(in a muddle\); expected .*$/),
    ]);
  });

  test.concurrent.each([
    { what: 'of one machine', methods: ['ListMachines'], hides: false, says: 'success with VM sim:///' },
    { what: 'where it lists nothing', methods: [], hides: false, says: 'success with VM sim:///' },
    {
      what: 'that only a list shows',
      methods: ['ListMachines'],
      hides: true,
      says: 'ListMachines still returns sim:///',
    },
  ] as const)('does not believe that a VM is gone: $what', async ({ methods, hides, says }) => {
    let isDeleted = false;
    const deviation: Deviation = (right) => ({
      deleteMachine: () => {
        isDeleted = true;
        return Promise.resolve(EMPTY_ANSWER);
      },
      getMachineStatus: async (request, context) =>
        hides && isDeleted ? notFound : await right.getMachineStatus(request, context),
    });
    await using world = await new World(deviation, { methods: new Set(methods) }).start();
    using verification = await Verification.begin({ ...world.options, lagMs: 100 }, never);

    const [result] = await all(verify(verification, never, ['creation']));

    expect(result?.outcome).toBe('passed');
    expect(result?.left).toEqual([expect.stringContaining(says)]);
  });

  test.concurrent('says in words that there is no driver', async () => {
    await using world = await new World(() => ({})).start();
    await world.stop();

    await expect(Verification.begin(world.options, never)).rejects.toThrow(
      /^the driver does not respond: GetCapabilities was not answered: no such socket; expected an answer$/,
    );
  });

  test.concurrent.each([
    { what: 'speaks another version', answer: { contractVersion: 'v9' }, why: /contract version "v9"; expected "v1"/ },
    { what: 'answers nothing', answer: { contractVersion: '' }, why: /contract version ""/ },
    { what: 'refuses', answer: { failure: internal.failure }, why: /Internal \(in a muddle\)/ },
  ])('does not begin with a driver that $what', async ({ answer, why }) => {
    const getCapabilities: Deviation = (right) => ({
      getCapabilities: async (...call) => ({ ...(await right.getCapabilities(...call)), ...answer }),
    });
    await using world = await new World(getCapabilities).start();

    const begun = Verification.begin(world.options, never);

    await expect(begun).rejects.toThrow(UnusableDriver);
    await expect(begun).rejects.toThrow(why);
  });
});
