import type { Random } from '../../../pkg/base/random/random.ts';
import type { Backup } from '../api-server/objects.ts';
import type { FaultPlan } from './faults.ts';
import type { MachinesWorld } from './machines-world.ts';
import type { Population } from './population.ts';
import type { Phase } from './script.ts';
import { integerIn, oneOf, seededRandom } from './seeded-random.ts';
import { FINE, type SeededWeather } from './weather.ts';

const MINUTE_MS = 60_000;
/** Within this time after the last fault everything is as asked for. */
const PROGRESS_MS = 90 * MINUTE_MS;
/** Within this time after its deletion nothing is left of a pool. */
const END_MS = 60 * MINUTE_MS;
/** What users did in an outage is seen, and what a restore has undone is said, within this time of its end: nothing is destroyed for a minute. */
const AFTER_OUTAGE_MS = 2 * MINUTE_MS;
/** After this time of rest nothing is written any more: a Node that came in place of another is kept from the autoscaler for 10 minutes. */
const REST_MS = 16 * MINUTE_MS;
/** Timers and requests of a process that has nothing to do: 16 and 10 were seen, watches, Leases and periods among them. */
const MOST_PENDING = 24;
const QUIET_MS = 4 * MINUTE_MS;
/** How far a clock jumps at most. */
const JUMP_MS = 3_600_000;
/** How long a driver is away at most while it is started again, and how long after a call has begun it ends at most. */
const DRIVER_AWAY_MS = 60_000;
const DRIVER_CALL_MS = 60_000;
/** How long a target cluster alone is away at most: longer than it takes until its outage is known. */
const TARGET_AWAY_MS = 300_000;
/** Of each step, that a backup is taken. */
const BACKUP_RATE = 0.08;
/** What concerns all places. */
const NOT_IN_ONE_PLACE = { death: 0, pause: 0, jump: 0, setBack: 0 };
/** How long after a request a user acts at most who meets it: before its answer has come, or soon after. */
const ENCOUNTERS_MS = [15, 2_000];
/** How long an end of the process is noticed by what starts it again. */
const RESTART_MS = 3_000;

/** Each has its own numbers, so that what does not happen changes nothing else. */
type Streams = Readonly<
  Record<
    | 'time'
    | 'acts'
    | 'mishaps'
    | 'encounter'
    | 'death'
    | 'pause'
    | 'jump'
    | 'driverRestart'
    | 'renamed'
    | 'backup'
    | 'outage'
    | 'targetOutage',
    Random
  >
>;

/** One life of a population: phases of trouble, each followed by a calm in which all has to become as asked for. */
export class Life {
  deaths = 0;
  readonly #world: MachinesWorld;
  readonly #population: Population;
  readonly #streams: Streams;
  readonly #endsWithFinding: boolean;
  #backup: Backup | undefined;
  /** The trouble in which users may act; undefined: they rest. */
  #meetsIn: FaultPlan | undefined;
  /** That of the present trouble. */
  #weather: SeededWeather;

  constructor(
    world: MachinesWorld,
    population: Population,
    { seed, endsWithFinding }: { readonly seed: number; readonly endsWithFinding: boolean },
  ) {
    this.#world = world;
    this.#weather = world.weather;
    this.#population = population;
    this.#endsWithFinding = endsWithFinding;
    const stream = (name: string): Random => seededRandom(seed, name);
    this.#streams = {
      time: stream('time'),
      acts: stream('acts'),
      mishaps: stream('mishaps'),
      encounter: stream('encounter'),
      death: stream('death'),
      pause: stream('pause'),
      jump: stream('jump'),
      driverRestart: stream('driver restart'),
      renamed: stream('renamed hosts'),
      backup: stream('backup'),
      outage: stream('outage'),
      targetOutage: stream('targets out of reach now'),
    };
  }

  async live(phases: readonly Phase[]): Promise<void> {
    if (!(await this.#settle('after its creation'))) return;
    for (const [i, phase] of phases.entries()) {
      await this.#trouble(phase);
      if (!(await this.#settle(`after phase ${i + 1}`))) return;
      if (phase.rests) await this.#rest(i + 1);
    }
    await this.#end();
  }

  get #isOver(): boolean {
    const { isHopeless, findings } = this.#population.ledger;
    return isHopeless || (this.#endsWithFinding && findings.length > 0);
  }

  async #trouble({ plan: drawn, steps, place }: Phase): Promise<void> {
    const { cells, trace } = this.#world;
    const at = place === undefined ? undefined : Math.floor(place * cells.length);
    const troubled = at === undefined ? undefined : cells[at];
    const weather = (this.#weather = (troubled ?? this.#world).weather);
    const plan = troubled === undefined ? drawn : { ...drawn, ...NOT_IN_ONE_PLACE };
    trace.add(`trouble ${troubled === undefined ? '' : `in ${troubled.namespace} `}${JSON.stringify(plan)}`);
    this.#population.troubleAt?.(at);
    weather.rates = plan.rates;
    const clouds = troubled === undefined ? cells : [troubled];
    for (const { simulation } of clouds) simulation.faults.set(plan.driver);
    for (let i = 0; i < steps && !this.#isOver; i++) await this.#step(plan, clouds);
    this.#meetsIn = undefined;
    this.#world.processes.turn = undefined;
    if (troubled !== undefined) await this.#expectOthers(weather);
    this.#world.processes.death = undefined;
    this.#world.processes.pause = undefined;
    weather.rates = FINE;
    weather.isDown = false;
    for (const { simulation, driverProcess, targetWay } of cells) {
      targetWay.restore();
      simulation.faults.set([]);
      driverProcess.atNextCall = undefined;
    }
    trace.add('calm');
    this.#population.troubleAt?.(undefined);
    this.#population.calm();
  }

  /** Where there is no trouble, everything becomes as asked for while it lasts elsewhere. */
  async #expectOthers(weather: SeededWeather): Promise<void> {
    const { others, ledger } = this.#population;
    if (others === undefined || this.#isOver) return;
    if (this.#streams.outage() < 0.5) weather.isDown = true;
    others.calm();
    others.expectProgress(PROGRESS_MS);
    await this.#advanceBySteps(PROGRESS_MS, () => others.isAsAsked());
    if (this.#isOver || others.isAsAsked()) return;
    const within = `${PROGRESS_MS / MINUTE_MS} minutes`;
    ledger.find(`where there is no trouble, the pools are not as asked for within ${within}: ${others.shown()}`);
  }

  async #step(plan: FaultPlan, clouds: readonly MachinesWorld[]): Promise<void> {
    const world = this.#world;
    const { acts, mishaps, death, pause, jump, backup, outage, time } = this.#streams;
    if (acts() < plan.act) this.#population.act(plan.acts, acts);
    if (mishaps() < plan.mishap) this.#population.mishap(mishaps);
    if (this.#streams.encounter() < plan.encounter) this.#meet(plan);
    if (death() < plan.death) {
      world.processes.death = { ...drawBlow(death), how: death() < 0.5 ? 'before' : 'after' };
    }
    // Perhaps longer than its Leases last.
    if (pause() < plan.pause)
      world.processes.pause = { ...drawBlow(pause), how: pause() * 2 * world.processes.leaseDurationMs };
    if (jump() < plan.jump) this.#jump();
    if (this.#streams.driverRestart() < plan.driverRestart) this.#restartDriver(clouds);
    if (this.#streams.renamed() < plan.renamed) this.#population.renameHost?.(this.#streams.renamed);
    if (this.#backup === undefined || backup() < BACKUP_RATE) this.#backup = world.servers.control.objects.backup();
    if (backup() < plan.setBack) this.#setBack();
    if (outage() < plan.outage) {
      world.trace.add('the API servers cannot be reached');
      const weather = this.#weather;
      weather.isDown = true;
      world.time.schedule(outage() * 180_000, () => {
        weather.isDown = false;
      });
    }
    if (this.#streams.targetOutage() < plan.targetOutage) this.#cutOffTarget(clouds);
    await this.#advance(time() * 2 * plan.stepMs);
  }

  /** The target cluster of one of these places; a common one is not that of one place. */
  #cutOffTarget(places: readonly MachinesWorld[]): void {
    const { targetOutage: random } = this.#streams;
    const { targetWay, sharesTarget, namespace } = oneOf(random, places);
    const forMs = random() * TARGET_AWAY_MS;
    if (sharesTarget && places.length === 1) return;
    this.#world.trace.add(`the target cluster of ${namespace} cannot be reached for ${Math.round(forMs)} ms`);
    targetWay.cutOff(forMs);
  }

  /** A user acts between a request of the process and its answer, or soon after that. */
  #meet(plan: FaultPlan): void {
    const { encounter } = this.#streams;
    const { processes, time } = this.#world;
    const afterMs = encounter() * oneOf(encounter, ENCOUNTERS_MS);
    const act = (): void => {
      if (this.#meetsIn === plan) this.#population.act(plan.acts, encounter);
    };
    this.#meetsIn = plan;
    processes.turn = { ...drawBlow(encounter), how: () => void time.schedule(afterMs, act) };
  }

  #jump(): void {
    const ms = (this.#streams.jump() - 0.5) * 2 * JUMP_MS;
    this.#world.trace.add(`the clock of the host jumps by ${Math.round(ms)} ms`);
    this.#world.processes.leader.clock.jump(ms);
  }

  /** Now, or soon after its next call has begun, which then ends without an answer. */
  #restartDriver(clouds: readonly MachinesWorld[]): void {
    const { driverRestart: random } = this.#streams;
    const { time, trace } = this.#world;
    const { driverProcess, namespace } = oneOf(random, clouds);
    const [awayMs, afterMs] = [random() * DRIVER_AWAY_MS, random() ** 2 * DRIVER_CALL_MS];
    const restart = (): void => {
      trace.add(`the driver of ${namespace} is started again, and away for ${Math.round(awayMs)} ms`);
      driverProcess.restart(awayMs, () => random() < 0.5);
    };
    if (random() < 0.3) return restart();
    driverProcess.atNextCall = () => time.schedule(afterMs, restart);
  }

  #setBack(): void {
    const world = this.#world;
    if (this.#backup === undefined || world.weather.isDown) return;
    world.weather.isDown = true;
    world.restore(this.#backup);
    this.#population.setBack();
    world.time.schedule(this.#streams.backup() * 60_000, () => {
      world.weather.isDown = false;
    });
  }

  /** Time goes by; a process that has ended is started again. */
  async #advance(ms: number, isEnough: () => boolean = () => false): Promise<void> {
    const world = this.#world;
    const untilMs = world.time.elapsedMs + ms;
    const hasEnded = (): boolean => world.processes.lacksOne;
    while (world.time.elapsedMs < untilMs && !isEnough() && !this.#isOver) {
      await world.time.advance(
        untilMs - world.time.elapsedMs,
        () => this.#isOver || isEnough() || hasEnded() || world.processes.needsStandby,
      );
      this.#population.ledger.look();
      if (world.processes.needsStandby) {
        world.processes.needsStandby = false;
        await world.processes.start();
      }
      if (!hasEnded()) continue;
      this.deaths += 1;
      await world.time.advance(RESTART_MS);
      await world.processes.start();
    }
  }

  /** In calm everything becomes as asked for. */
  async #settle(when: string): Promise<boolean> {
    const population = this.#population;
    const { time, processes } = this.#world;
    const fromMs = time.elapsedMs;
    let quietFromMs = fromMs;
    population.expectProgress(PROGRESS_MS);
    await this.#advanceBySteps(PROGRESS_MS, () => {
      if (processes.running.some(({ hasOutage }) => hasOutage)) quietFromMs = time.elapsedMs + AFTER_OUTAGE_MS;
      return time.elapsedMs >= quietFromMs && population.isAsAsked();
    });
    if (this.#isOver) return false;
    if (!population.isAsAsked()) {
      const within = `${PROGRESS_MS / MINUTE_MS} minutes`;
      population.ledger.find(`${when} the pool is not as asked for within ${within}: ${population.shown()}`);
      return false;
    }
    this.#world.trace.add(`as asked for ${when}, after ${time.elapsedMs - fromMs} ms`);
    population.settle();
    return true;
  }

  async #advanceBySteps(ms: number, isEnough: () => boolean): Promise<void> {
    const untilMs = this.#world.time.elapsedMs + ms;
    while (this.#world.time.elapsedMs < untilMs && !isEnough() && !this.#isOver) await this.#advance(1_000);
  }

  async #rest(phase: number): Promise<void> {
    const world = this.#world;
    const population = this.#population;
    const find = (what: string): void => population.ledger.find(`at rest after phase ${phase}: ${what}`);
    population.beginRest();
    await this.#advance(REST_MS);
    if (this.#isOver) return;
    for (const what of population.leftovers()) find(what);
    const before = world.processes.writes;
    await this.#advance(QUIET_MS);
    if (world.processes.writes > before) find(`${world.processes.writes - before} writes`);
    if (!population.isAsAsked()) find('the pool is not as asked for any more');
    else for (const what of population.untruths()) find(what);
  }

  async #end(): Promise<void> {
    if (this.#isOver) return;
    const population = this.#population;
    population.end();
    await this.#advanceBySteps(END_MS, () => population.left().length === 0);
    const left = population.left();
    if (left.length > 0) population.ledger.find(`after the end of the pool there are left: ${left.join(', ')}`);
    await this.#advance(REST_MS);
    if (this.#isOver) return;
    const most = MOST_PENDING * this.#world.cells.length;
    for (const { identity, pending } of this.#world.processes.running) {
      if (pending.timers <= most && pending.requests <= most) continue;
      const what = `${pending.timers} timers and ${pending.requests} requests`;
      population.ledger.find(`long after the end of the pool ${identity} still waits for ${what}`);
    }
  }
}

/** Most of what is worth a blow is a change. */
function drawBlow(random: Random): { after: number; readonly countsChanges: boolean } {
  const countsChanges = random() < 0.7;
  return { after: countsChanges ? integerIn(random, 1, 8) : integerIn(random, 1, 60), countsChanges };
}
