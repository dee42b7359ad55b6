import { isDeepStrictEqual } from 'node:util';

import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { eventually } from '../expect/eventually.ts';
import { httpProxyFor } from '../integration/kube-session.ts';
import { InProcessManager, type RunOptions } from './manager.ts';
import { Pool } from './pool.ts';
import { QUICK, SimulatedCloud, type SimCloudOptions } from './sim-cloud.ts';
import type { Site } from './site.ts';

/** A fault, and what may come of it at most. */
export interface FaultRow {
  readonly what: string;
  /** Of rows that resemble one another, a sample has one; without it a row is in each sample. */
  readonly kind?: string;
  /** Whether it is in no sample, because it takes minutes. */
  readonly takesMinutes?: true;
  /** What goes wrong at the provider all the time. */
  readonly faults?: SimCloudOptions['faults'];
  /** Goes wrong beside the work, until it resolves or the work is over. */
  readonly disturb?: (trial: Trial, over: AbortSignal) => Promise<void>;
  readonly flags?: Readonly<Record<string, string>>;
  readonly run?: Pick<RunOptions, 'clock' | 'hooks'>;
  /** What the driver says that it can do. */
  readonly capabilities?: SimCloudOptions['capabilities'];
  /** How long the API server takes for each answer to the manager, watches aside. */
  readonly answersAfterMs?: number;
  /** At least so many machines, that each fault of the row comes soon. */
  readonly machines?: number;
  /** At most so many, because each takes long. */
  readonly mostMachines?: number;
  /** Whether two VMs of one name are what the row is about. */
  readonly twins?: boolean;
  /** VMs made beyond those that are needed: of machines whose VM was taken away, or made by the fault itself. */
  readonly extraVMs?: number;
}

/** What came of a fault. */
export interface Outcome {
  readonly what: string;
  /** Why the work did not come to its end; undefined when it did. */
  readonly failure: string | undefined;
  readonly created: number;
  readonly deleted: number;
  /** The least that the work needs. */
  readonly needed: number;
  readonly doubled: readonly string[];
  /** Machines that worked when nothing was asked for, and did not live on although only the fault went on. */
  readonly replaced: readonly string[];
}

/** The loops look often; nothing becomes Failed by time alone. */
const FLAGS = {
  'machine-safety-overshooting-period': '2s',
  'machine-safety-orphan-vms-period': '2s',
  'machine-safety-orphan-vms-grace': '2s',
  'machine-safety-grace': '0s',
};
const PATIENCE = { timeoutMs: 600_000 };

/** A pool, its cloud and its manager, while something goes wrong. */
export class Trial {
  readonly site: Site;
  readonly cloud: SimulatedCloud;
  readonly pool: Pool;
  readonly manager: InProcessManager;
  readonly #replaced: string[] = [];

  private constructor(site: Site, cloud: SimulatedCloud, pool: Pool, manager: InProcessManager) {
    this.site = site;
    this.cloud = cloud;
    this.pool = pool;
    this.manager = manager;
  }

  /**
   * Takes `machines` machines through creation, a roll, a shrink and deletion while a fault is on, which comes once more when nothing
   * is asked for, and checks after each step that there is one VM for each machine, none without, and no freeze left.
   */
  static async run(site: Site, machines: number, row: FaultRow, seed: string): Promise<Outcome> {
    const {
      what,
      faults,
      disturb,
      capabilities,
      answersAfterMs,
      extraVMs = 0,
      flags = {},
      run = {},
      twins = false,
    } = row;
    await using slow = answersAfterMs === undefined ? undefined : await httpProxyFor(site.plane.connection);
    slow?.delay(answersAfterMs ?? 0);
    await using cloud = await SimulatedCloud.start({
      site,
      seed: `${seed}/${what}`,
      latencyMs: { ...QUICK, create: 150, delete: 150 },
      ...(faults === undefined ? {} : { faults }),
      ...(capabilities === undefined ? {} : { capabilities }),
    });
    await using pool = await Pool.create({ site, cloud, replicas: machines, maxSurge: 2, maxUnavailable: 1 });
    await using manager = await InProcessManager.start({
      ...pool.access,
      ...(slow === undefined ? {} : { kubeconfig: await site.kubeconfigThrough(slow.url) }),
      ...run,
      flags: { ...FLAGS, ...flags },
    });
    const trial = new Trial(site, cloud, pool, manager);
    const over = new AbortController();
    const disturbing = disturb?.(trial, over.signal);
    let failure: string | undefined;
    try {
      await trial.#work(machines, disturbing, async () => disturb?.(trial, over.signal));
    } catch (err) {
      failure = err instanceof Error ? err.message : String(err);
    } finally {
      over.abort();
      await disturbing?.catch((err: unknown) => (failure ??= String(err)));
    }
    const { created, deleted } = cloud;
    return {
      what,
      failure,
      created: created.length,
      deleted,
      needed: 2 * machines + extraVMs,
      doubled: twins ? [] : [...cloud.doubled],
      replaced: trial.#replaced,
    };
  }

  async #work(machines: number, disturbing: Promise<void> | undefined, disturb: () => Promise<void>): Promise<void> {
    const { pool } = this;
    await this.#settled(machines);
    await pool.roll('2', { maxSurge: 2, maxUnavailable: 1 });
    await this.#settled(machines);
    // What was to go wrong has gone wrong by now, and is over; now once more, at rest.
    await disturbing;
    const before = await this.#settled(machines);
    await disturb();
    const after = await this.#settled(machines);
    this.#compare(before, after);
    const half = Math.floor(machines / 2);
    await pool.scale(half);
    this.#compare(await this.#settled(half), after);
    await pool.delete();
    await pool.untilGone(PATIENCE);
  }

  /** All of `some` must still be what they are in `all`: the same object, the same VM. */
  #compare(some: ReadonlyMap<string, string>, all: ReadonlyMap<string, string>): void {
    for (const [name, identity] of some) if (all.get(name) !== identity) this.#replaced.push(name);
  }

  /** Resolves with the machines, by name, when everything is as asked for: UID and provider id. */
  async #settled(machines: number): Promise<ReadonlyMap<string, string>> {
    await this.pool.untilUp(machines, PATIENCE);
    const look = async (): Promise<void> => {
      const { metadata, status } = await this.pool.deployment();
      const marks = [metadata.labels?.['freeze'], status?.conditions?.some(({ type }) => type === 'Frozen')];
      if (!isDeepStrictEqual(marks, [undefined, false])) throw new Error(`frozen: ${JSON.stringify(marks)}`);
      const outages = await this.manager.metric('machinist_cluster_outage');
      if (outages !== 0) throw new Error(`${outages} clusters have an outage`);
    };
    await eventually(look, { ...PATIENCE, describe: 'freezes and outages to be over' });
    return identitiesOf(await this.pool.machines());
  }
}

/** Machines by name: what must not change while they live. */
export function identitiesOf(machines: readonly Machine[]): ReadonlyMap<string, string> {
  return new Map(machines.map(({ metadata, spec }) => [metadata.name, `${metadata.uid} ${spec.providerID ?? ''}`]));
}

/** Whether nothing was lost, and nothing was made or deleted that need not have been. */
export function isSound({ failure, created, deleted, needed, doubled, replaced }: Outcome): boolean {
  const isExact = created === deleted && created <= needed && doubled.length === 0;
  return failure === undefined && isExact && replaced.length === 0;
}
