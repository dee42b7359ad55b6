import type { Queue } from 'p-queue';

type Job = () => Promise<unknown>;

export interface FairOptions {
  /** Of its group's jobs, the highest goes first. */
  readonly priority?: number;
  readonly group?: string;
  /** How many of its group may run at once; without it as many as the pool runs. */
  readonly lane?: GroupLane;
}

/** Of one group: whoever ends a job takes it off `running`. */
export interface GroupLane {
  readonly most: number;
  running: number;
}

/**
 * What waits in a pool: a job of each group in turn, and of one group those of the highest priority first. So the two thousand jobs of one
 * group, urgent or not, delay the only one of another by no more than a job.
 */
export class FairQueue implements Queue<Job, FairOptions> {
  /** By group and priority. The groups are in the order of their turns. */
  readonly #waiting = new Map<string, Map<number, Fifo>>();
  /** Of groups that have one. */
  readonly #lanes = new Map<string, GroupLane>();
  #size = 0;

  /** None when none may run now: a pool takes one whenever there are any. */
  get size(): number {
    if (this.#lanes.size === 0) return this.#size;
    return this.#nextGroup() === undefined ? 0 : this.#size;
  }

  enqueue(job: Job, { priority = 0, group = '', lane }: FairOptions = {}): void {
    if (lane !== undefined) this.#lanes.set(group, lane);
    const byPriority = this.#waiting.get(group) ?? new Map<number, Fifo>();
    this.#waiting.set(group, byPriority);
    const jobs = byPriority.get(priority) ?? new Fifo();
    byPriority.set(priority, jobs);
    jobs.push(job);
    this.#size += 1;
  }

  dequeue(): Job | undefined {
    const group = this.#nextGroup();
    const byPriority = group === undefined ? undefined : this.#waiting.get(group);
    if (group === undefined || byPriority === undefined) return undefined;
    const lane = this.#lanes.get(group);
    if (lane !== undefined) lane.running += 1;
    const priority = Math.max(...byPriority.keys());
    const jobs = byPriority.get(priority);
    const job = jobs?.shift();
    if (jobs?.size === 0) byPriority.delete(priority);
    this.#waiting.delete(group);
    // Its next turn is after all others'.
    if (byPriority.size > 0) this.#waiting.set(group, byPriority);
    this.#size -= 1;
    return job;
  }

  /** The first whose lane is not full. */
  #nextGroup(): string | undefined {
    for (const group of this.#waiting.keys()) {
      const lane = this.#lanes.get(group);
      if (lane === undefined || lane.running < lane.most) return group;
    }
    return undefined;
  }

  filter({ priority = 0 }: FairOptions): Job[] {
    return [...this.#waiting.values()].flatMap((byPriority) => byPriority.get(priority)?.all() ?? []);
  }

  /** Nobody asks for that: a key that becomes urgent gets a second job. */
  setPriority(): never {
    throw new Error('queued jobs keep their priority');
  }

  /** Nor for that. */
  remove(): never {
    throw new Error('queued jobs are not removed');
  }
}

/** First in, first out, whatever its length. */
class Fifo {
  readonly #jobs: Job[] = [];
  #head = 0;

  get size(): number {
    return this.#jobs.length - this.#head;
  }

  push(job: Job): void {
    this.#jobs.push(job);
  }

  shift(): Job | undefined {
    const job = this.#jobs[this.#head];
    this.#head += 1;
    // Half of it is past: what is moved then has been paid for by those that went.
    if (2 * this.#head >= this.#jobs.length) {
      this.#jobs.splice(0, this.#head);
      this.#head = 0;
    }
    return job;
  }

  all(): Job[] {
    return this.#jobs.slice(this.#head);
  }
}
