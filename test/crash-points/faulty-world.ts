import type { DriverMethod, Faults } from '../../packages/providers/sim/faults.ts';
import { HOUR } from '../durations.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Driver, DriverCall, MachineRequest } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import type { Point } from '../cloud/crash-point.ts';
import type { MachinesWorld } from '../simulation/world/machines-world.ts';
import { Pool } from '../simulation/world/pool.ts';

const STEP_MS = 1_000;
/** Within this time what is waited for has come, unless told otherwise. */
export const PROGRESS_MS = 60 * 60_000;
/** How long it takes until a process that has ended is started again. */
const RESTART_MS = 3_000;
const CHANGES: ReadonlySet<DriverMethod> = new Set(['CreateMachine', 'InitializeMachine', 'DeleteMachine']);
const BREAKING: ReadonlyMap<string | symbol, DriverMethod> = new Map([
  ['createMachine', 'CreateMachine'],
  ['initializeMachine', 'InitializeMachine'],
  ['deleteMachine', 'DeleteMachine'],
] as const);

/** What happens at a mutation. paused: the process stands still for longer than its Leases last, and another one takes its place. */
export const FATES = ['before', 'after', 'lost', 'paused'] as const satisfies readonly (Point | 'paused')[];

/**
 * What makes another replica manage a cell at a mutation. handed-over: the replica is told to end; joined: another one starts, which is to have
 * the cell from then on, and this one goes on.
 */
export const MOVES = ['before', 'after', 'paused', 'handed-over', 'joined'] as const;

/** One of the fates or moves above. */
export type Fate = (typeof FATES)[number] | (typeof MOVES)[number];

/** A life in a simulated world with one fault in it, and what came of it. */
export interface FaultyLife {
  readonly n: number;
  readonly fate: Fate;
  /** Whether there was an n-th mutation. */
  readonly isHit: boolean;
  /** What was asked for from the first mutation that may be hit, of servers and of the driver. */
  readonly mutations: readonly string[];
  /** What must never be, and was. */
  readonly findings: readonly string[];
  readonly vmsCreated: number;
}

/** A world that is fine otherwise, in which one mutation goes wrong. */
export class FaultyWorld {
  readonly world: MachinesWorld;
  /** Of its place with a pool. */
  readonly pool: Pool;
  readonly #mutations: Mutations;
  #armed: { readonly n: number; readonly fate: Fate } = { n: 0, fate: 'before' };

  /**
   * `host` has a place with a pool, which it may be itself. A lost answer of its provider never comes; with `breaks`, the connection breaks
   * instead, which callers notice at once.
   */
  constructor(host: MachinesWorld, { breaks = false }: { readonly breaks?: boolean } = {}) {
    const [world] = host.cells;
    if (world === undefined) throw new Error('there is no pool');
    this.world = world;
    this.pool = new Pool(world);
    this.#mutations = new Mutations(host);
    if (breaks) world.processes.driverOf = () => this.breaking(world.simulation.driver);
    else this.#mutations.watch(world.simulation.faults);
  }

  /** What was asked for since it was armed. */
  get mutations(): readonly string[] {
    return this.#mutations.texts;
  }

  /** A MachineClass, as the control cluster has it. */
  classOf(name: string): KubeObject {
    const path = this.world.pathOf('machineclasses', name);
    return (this.world.servers.control.handle({ method: 'GET', path }) as { readonly body: KubeObject }).body;
  }

  /** Notes something that must not be. */
  find(what: string): void {
    this.pool.ledger.find(what);
  }

  /** A driver that is called over a connection which breaks when an answer is lost. */
  breaking(driver: Driver): Driver {
    return new Proxy(driver, {
      get: (target, name) => {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== 'function') return member;
        const method = BREAKING.get(name);
        if (method === undefined) return member.bind(target) as unknown;
        return async (request: MachineRequest, call: DriverCall): Promise<unknown> => {
          const isLost = this.#mutations.isLost(`${method} ${request.machine.metadata.name}`);
          try {
            return await (member as (...args: unknown[]) => Promise<unknown>).call(target, request, call);
          } finally {
            // oxlint-disable-next-line no-unsafe-finally -- takes the place of any answer and any failure
            if (isLost) throw new DriverError('Unavailable', `${method}: the connection broke`, { unanswered: true });
          }
        };
      },
    });
  }

  /** The n-th mutation from now on goes wrong; with n = 0 none. `atBlow` is called just before it is sent. */
  arm(n: number, fate: Fate, atBlow?: () => void): void {
    const { processes } = this.world;
    this.#armed = { n, fate };
    this.#mutations.begin(fate === 'lost' ? n : 0, atBlow);
    if (n === 0 || fate === 'lost') return;
    const blow = { after: n, countsChanges: true };
    if (atBlow !== undefined) processes.turn = { ...blow, how: atBlow };
    if (fate === 'before' || fate === 'after') processes.death = { ...blow, how: fate };
    if (fate === 'paused') processes.pause = { ...blow, how: 2 * processes.leaseDurationMs };
    if (fate === 'handed-over') processes.turn = { ...blow, how: (process) => process.terminate() };
    if (fate === 'joined') processes.turn = { ...blow, how: () => (processes.replicas += 1) };
  }

  /** Waits, and starts processes in place of those that have ended. What does not come in time is found. */
  async until(what: string, isSo: () => boolean, withinMs = PROGRESS_MS): Promise<void> {
    const { processes, time } = this.world;
    const { ledger } = this.pool;
    const untilMs = time.elapsedMs + withinMs;
    while (time.elapsedMs < untilMs && !isSo()) {
      await time.advance(STEP_MS, () => processes.lacksOne || processes.needsStandby);
      ledger.look();
      if (processes.needsStandby) await processes.start();
      processes.needsStandby = false;
      if (!processes.lacksOne) continue;
      await time.advance(RESTART_MS);
      await processes.start();
    }
    if (!isSo()) ledger.find(`the pool is not ${what}: ${this.pool.shown()}`);
  }

  /** What came of it. */
  get life(): FaultyLife {
    const { death, pause, turn } = this.world.processes;
    const { n, fate } = this.#armed;
    const { texts } = this.#mutations;
    const isOver = death === undefined && pause === undefined && turn === undefined && texts.length >= n;
    const { findings, vmsMade } = this.pool.ledger;
    return { n, fate, isHit: n > 0 && isOver, mutations: texts, findings, vmsCreated: vmsMade };
  }
}

/** Counts the mutations of a world on their way, and loses the answer to one of them: its caller learns nothing of what it has done. */
class Mutations {
  texts: string[] = [];
  #lost = 0;
  #atLoss: (() => void) | undefined;

  constructor({ weather: ofControl, cells: [cell] }: MachinesWorld) {
    for (const weather of new Set([ofControl, cell!.weather])) {
      const faultOf = weather.faultOf.bind(weather);
      weather.faultOf = (request) => {
        const { method, path } = request;
        const isMutation = method !== 'GET' && !/\/(events|leases|selfsubject[a-z]+reviews)(\/|$|\?)/.test(path);
        return isMutation && this.isLost(`${method} ${path}`) ? 'answer-lost' : faultOf(request);
      };
    }
  }

  begin(lost: number, atLoss: (() => void) | undefined): void {
    this.texts = [];
    this.#lost = lost;
    this.#atLoss = atLoss;
  }

  watch(faults: Faults): void {
    const next = faults.next.bind(faults);
    faults.next = (method, machine) => {
      const isLost = CHANGES.has(method) && this.isLost(`${method} ${machine}`);
      const rule = next(method, machine);
      if (!isLost) return rule;
      // What fails does nothing, also where nobody is told.
      return rule?.effect === 'fail' ? { method, effect: 'hang' } : { method, effect: 'late', delayMs: HOUR };
    };
  }

  isLost(text: string): boolean {
    const isLost = this.texts.push(text) === this.#lost;
    if (isLost) this.#atLoss?.();
    return isLost;
  }
}
