import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { equal } from '../api-server/json.ts';

/**
 * How few Machines a pool may be brought to by deletions, and how many by creations, whatever the controllers have seen of what was asked for
 * meanwhile: the smallest and largest size since the pool was last as asked for, and where its template has changed, less the largest number
 * that may be unavailable, and more by the largest surge.
 */
export class Bounds {
  #template: unknown;
  #hasRolled = false;
  #hasResized = false;
  #least = 0;
  #most = 0;
  #mostUnavailable = 0;
  #mostSurge = 0;
  #onlyUpdates = true;

  /** The pool is as asked for: only what is asked for from now on counts. */
  settle(pool: MachineDeployment | undefined): void {
    const size = pool?.spec?.replicas ?? 0;
    this.#template = pool?.spec?.template;
    this.#hasRolled = false;
    this.#hasResized = false;
    [this.#least, this.#most] = [size, size];
    [this.#mostUnavailable, this.#mostSurge] = [0, 0];
    this.#onlyUpdates = true;
    this.#observeStrategy(pool, size);
  }

  /** Something was asked for. */
  observe(pool: MachineDeployment | undefined): void {
    const isGoing = pool === undefined || pool.metadata.deletionTimestamp !== undefined;
    const size = isGoing ? 0 : (pool.spec.replicas ?? 0);
    this.#hasRolled ||= !equal(this.#template, pool?.spec?.template);
    this.#hasResized ||= size !== this.#least || size !== this.#most;
    this.#least = Math.min(this.#least, size);
    this.#most = Math.max(this.#most, size);
    this.#observeStrategy(pool, size);
  }

  /** Another manager has changed the size of a MachineSet by so many, until that is seen. */
  resize(by: number): void {
    this.#hasResized = true;
    this.#least += Math.min(0, by);
    this.#most += Math.max(0, by);
  }

  /** Whether it is rolled, and of the same size as before. */
  get onlyRolls(): boolean {
    return this.#hasRolled && !this.#hasResized;
  }

  /** Whether its machines are only updated in place, without any in addition. */
  get onlyUpdates(): boolean {
    return this.onlyRolls && this.#onlyUpdates && this.#mostSurge === 0;
  }

  get hasRolled(): boolean {
    return this.#hasRolled;
  }

  get hasResized(): boolean {
    return this.#hasResized;
  }

  /** How many Machines that are not being deleted there are at least. */
  get fewest(): number {
    return this.#least - (this.#hasRolled ? this.#mostUnavailable : 0);
  }

  /** How many there are at most. */
  get most(): number {
    return this.#most + (this.#hasRolled ? this.#mostSurge : 0);
  }

  #observeStrategy(pool: MachineDeployment | undefined, size: number): void {
    const { type, rollingUpdate, inPlaceUpdate } = pool?.spec?.strategy ?? {};
    this.#onlyUpdates &&= type === 'InPlaceUpdate';
    if (type === 'Recreate') {
      this.#mostUnavailable = Math.max(this.#mostUnavailable, size);
      return;
    }
    const { maxUnavailable = 1, maxSurge = 1 } = (type === 'InPlaceUpdate' ? inPlaceUpdate : rollingUpdate) ?? {};
    const unavailable = shareOf(maxUnavailable, size, Math.floor);
    const surge = shareOf(maxSurge, size, Math.ceil);
    // As with Deployments of Kubernetes: with neither, a rollout would never begin.
    this.#mostUnavailable = Math.max(this.#mostUnavailable, surge === 0 ? Math.max(1, unavailable) : unavailable);
    this.#mostSurge = Math.max(this.#mostSurge, surge);
  }
}

function shareOf(value: number | string, size: number, round: (share: number) => number): number {
  if (typeof value === 'number') return value;
  return value.endsWith('%') ? round((Number(value.slice(0, -1)) * size) / 100) : Number(value);
}
