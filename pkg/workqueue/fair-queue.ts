import type { Queue } from 'p-queue';

/** A job that waits in a pool. */
type Job = () => Promise<unknown>;

/** How a job waits. */
export interface FairOptions {
  /** The highest goes first. */
  readonly priority?: number;
  /** Whose job it is. */
  readonly group?: string;
}

/**
 * What waits in a pool: jobs of the highest priority first, and of one priority a job of each group in turn. So the two thousand jobs of one
 * group delay the only one of another by no more than a job.
 */
export class FairQueue implements Queue<Job, FairOptions> {
  /** By priority and group. The groups are in the order of their turns. */
  readonly #waiting = new Map<number, Map<string, Fifo>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  enqueue(job: Job, { priority = 0, group = '' }: FairOptions = {}): void {
    const groups = this.#waiting.get(priority) ?? new Map<string, Fifo>();
    this.#waiting.set(priority, groups);
    const jobs = groups.get(group) ?? new Fifo();
    groups.set(group, jobs);
    jobs.push(job);
    this.#size += 1;
  }

  dequeue(): Job | undefined {
    if (this.#size === 0) return undefined;
    const priority = Math.max(...this.#waiting.keys());
    const groups = this.#waiting.get(priority);
    const [turn] = groups ?? [];
    if (groups === undefined || turn === undefined) return undefined;
    const [group, jobs] = turn;
    const job = jobs.shift();
    groups.delete(group);
    // Its next turn is after all others'.
    if (jobs.size > 0) groups.set(group, jobs);
    if (groups.size === 0) this.#waiting.delete(priority);
    this.#size -= 1;
    return job;
  }

  filter({ priority = 0 }: FairOptions): Job[] {
    return [...(this.#waiting.get(priority)?.values() ?? [])].flatMap((jobs) => jobs.all());
  }

  /** Nobody asks for that: a key that becomes urgent gets a second job. */
  setPriority(): never {
    throw new Error('jobs that wait keep their priority');
  }

  /** Nor for that. */
  remove(): never {
    throw new Error('jobs that wait are not removed');
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
