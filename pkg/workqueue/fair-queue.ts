import type { Queue } from 'p-queue';

/** A job that waits in a pool. */
type Job = () => Promise<unknown>;

/** How a job waits. */
export interface FairOptions {
  /** Of its group's jobs, the highest goes first. */
  readonly priority?: number;
  /** Whose job it is. */
  readonly group?: string;
}

/**
 * What waits in a pool: a job of each group in turn, and of one group those of the highest priority first. So the two thousand jobs of one
 * group, urgent or not, delay the only one of another by no more than a job.
 */
export class FairQueue implements Queue<Job, FairOptions> {
  /** By group and priority. The groups are in the order of their turns. */
  readonly #waiting = new Map<string, Map<number, Fifo>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  enqueue(job: Job, { priority = 0, group = '' }: FairOptions = {}): void {
    const byPriority = this.#waiting.get(group) ?? new Map<number, Fifo>();
    this.#waiting.set(group, byPriority);
    const jobs = byPriority.get(priority) ?? new Fifo();
    byPriority.set(priority, jobs);
    jobs.push(job);
    this.#size += 1;
  }

  dequeue(): Job | undefined {
    const [turn] = this.#waiting;
    if (turn === undefined) return undefined;
    const [group, byPriority] = turn;
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

  filter({ priority = 0 }: FairOptions): Job[] {
    return [...this.#waiting.values()].flatMap((byPriority) => byPriority.get(priority)?.all() ?? []);
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
