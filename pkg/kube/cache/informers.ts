import type { KubeObject } from '../../apis/meta.ts';
import type { ObjectIdentity } from '../client/client.ts';
import type { WriteObserver } from '../client/gated-writer.ts';
import type { Resource } from '../../apis/resource.ts';
import type { ReflectedInformer } from './reflected-informer.ts';

type Member = Pick<ReflectedInformer<KubeObject>, 'resource' | 'run' | 'waitForSync' | 'wrote' | 'deleted'>;

/**
 * The informers of one cluster: run together, and told together of what that cluster's writer wrote. Informers may join
 * while the set runs (targets that come up later); they run until the set ends.
 */
export class InformerSet implements WriteObserver {
  readonly #members: Member[] = [];
  readonly #running = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;

  add<T extends KubeObject>(informer: ReflectedInformer<T>): ReflectedInformer<T> {
    // Members are only ever given objects of their own resource.
    const member = informer as unknown as Member;
    this.#members.push(member);
    if (this.#signal !== undefined) this.#start(member, this.#signal);
    return informer;
  }

  /** Runs all informers until the signal is aborted; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const member of this.#members) this.#start(member, signal);
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.all(this.#running);
  }

  /** Resolves when every informer has its first list; rejects with the signal's reason. */
  async waitForSync(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#members.map((member) => member.waitForSync(signal)));
  }

  wrote<T extends KubeObject>(resource: Resource<T>, object: T): void {
    for (const member of this.#members) if (isSame(member.resource, resource)) member.wrote(object);
  }

  deleted(resource: Resource<KubeObject>, object: ObjectIdentity): void {
    for (const member of this.#members) if (isSame(member.resource, resource)) member.deleted(object);
  }

  #start(member: Member, signal: AbortSignal): void {
    const running = member.run(signal).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }
}

function isSame(a: Resource<KubeObject>, b: Resource<KubeObject>): boolean {
  return a.plural === b.plural && a.group === b.group;
}
