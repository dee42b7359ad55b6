import type { Lease } from '../pkg/apis/wire.ts';
import type { New } from '../pkg/kube/client/client.ts';
import { ApiError } from '../pkg/kube/client/errors.ts';

/** Leases of one namespace, in memory, with the refusals of an API server. */
export class MemoryLeases {
  readonly stored = new Map<string, Lease>();
  #version = 0;

  /** Those with a label, of this value if one is given. */
  by(label: string, value: string | undefined): readonly Lease[] {
    return [...this.stored.values()].filter(({ metadata: { labels } }) =>
      value === undefined ? labels?.[label] !== undefined : labels?.[label] === value,
    );
  }

  async get(name: string): Promise<Lease> {
    const lease = this.stored.get(name);
    if (lease === undefined) throw new ApiError(404, 'NotFound', '');
    return lease;
  }

  async create(lease: New<Lease>): Promise<Lease> {
    if (this.stored.has(lease.metadata.name)) throw new ApiError(409, 'AlreadyExists', '');
    return this.#put(lease);
  }

  async replace(lease: Lease): Promise<Lease> {
    this.#requireCurrent(lease);
    return this.#put(lease);
  }

  async delete(lease: Lease): Promise<void> {
    this.#requireCurrent(lease);
    this.stored.delete(lease.metadata.name);
  }

  #requireCurrent({ metadata }: Lease): void {
    const current = this.stored.get(metadata.name);
    if (current === undefined) throw new ApiError(404, 'NotFound', '');
    if (current.metadata.resourceVersion !== metadata.resourceVersion) throw new ApiError(409, 'Conflict', '');
  }

  #put({ metadata, spec }: New<Lease>): Lease {
    this.#version += 1;
    const whole = {
      namespace: 'ns',
      uid: metadata.name,
      creationTimestamp: '',
      ...metadata,
      resourceVersion: String(this.#version),
    };
    const lease: Lease = { metadata: whole, ...(spec && { spec }) };
    this.stored.set(metadata.name, lease);
    return lease;
  }
}

/** What target claims are told where no namespace has Machines, and replicas are of one revision for a while already. */
export const WITHOUT_MACHINES = {
  hasMachines: () => false,
  withMachines: () => [],
  findMachines: () => Promise.resolve(false),
  hasNodes: () => false,
  common: {
    cells: () => [],
    nodesOf: () => 'none' as const,
    untilPresent: () => Promise.resolve(),
    mayMoveTo: () => false,
  },
  replicas: { haveOneTarget: true, areSettled: true },
};
