import { type ChildProcess, fork } from 'node:child_process';
import path from 'node:path';

/** What the process of the targets is asked. */
export type Order = { readonly id: number } & (
  | { readonly do: 'simulate'; readonly account: string }
  | { readonly do: 'adopt'; readonly account: string; readonly kubeconfig: string }
  | { readonly do: 'vms' }
  | { readonly do: 'calls'; readonly account: string }
  | { readonly do: 'created'; readonly account: string }
);

/** What it answers; `id` 0: it is ready. */
export interface Answer {
  readonly id: number;
  readonly target?: Target;
  readonly vms?: number;
  /** Calls of the driver so far, by method. */
  readonly calls?: Readonly<Record<string, number>>;
  readonly created?: readonly CreatedVM[];
  readonly error?: string;
}

/** A VM that the driver has created, and when it answered; milliseconds since the epoch. */
export interface CreatedVM {
  readonly machine: string;
  readonly atMs: number;
}

/** A target cluster. */
export interface Target {
  /** Path of the kubeconfig of the manager's user. */
  readonly kubeconfig: string;
  readonly url: string;
}

/** Shipped roles that a target cluster has. */
export const TARGET_ROLES = ['target', 'cells-target', 'sim-driver'] as const;

type Unnumbered = Order extends infer O ? (O extends Order ? Omit<O, 'id'> : never) : never;

/** Target clusters of cells in a process of their own, with a driver that has an account for each. */
export class Targets implements AsyncDisposable {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #last = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    child.on('message', (answer: Answer) => this.#waiting.get(answer.id)?.(answer));
    child.once('exit', () => {
      for (const [id, answered] of this.#waiting) answered({ id, error: 'the process of the targets has ended' });
    });
  }

  /** `directory` is that of a control plane whose users the targets take; the driver listens on `socket`. */
  static async start(directory: string, socket: string): Promise<Targets> {
    const entry = path.join(import.meta.dirname, 'targets-process.ts');
    const targets = new Targets(fork(entry, [directory, socket], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }));
    await targets.#answer(0);
    return targets;
  }

  /** A simulated one. */
  async simulate(account: string): Promise<Target> {
    const { target } = await this.#send({ do: 'simulate', account });
    if (target === undefined) throw new Error('no target was answered');
    return target;
  }

  /** The VMs of this account become Nodes there. */
  async adopt(account: string, kubeconfig: string): Promise<void> {
    await this.#send({ do: 'adopt', account, kubeconfig });
  }

  /** VMs of all accounts. */
  async vms(): Promise<number> {
    return (await this.#send({ do: 'vms' })).vms ?? 0;
  }

  /** Calls of the driver so far about an account, by method. */
  async calls(account: string): Promise<Readonly<Record<string, number>>> {
    return (await this.#send({ do: 'calls', account })).calls ?? {};
  }

  /** The VMs that were created in an account so far. */
  async created(account: string): Promise<readonly CreatedVM[]> {
    return (await this.#send({ do: 'created', account })).created ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    if (!this.#child.kill('SIGTERM')) return;
    await ended;
  }

  async #send(order: Unnumbered): Promise<Answer> {
    const id = ++this.#last;
    const answer = this.#answer(id);
    this.#child.send({ ...order, id });
    return await answer;
  }

  async #answer(id: number): Promise<Answer> {
    const answer = await new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.#waiting.delete(id);
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  }
}
