/** A Machine that is about to record a VM or the name of a Node, or has recorded it. */
export interface IdentityHolder {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
}

/** VMs and names of Nodes, and which Machine of this process has them, or is about to. */
export class Identities {
  readonly #holders = new Map<string, IdentityHolder>();

  get(key: string): IdentityHolder | undefined {
    return this.#holders.get(key);
  }

  set(key: string, holder: IdentityHolder): void {
    this.#holders.set(key, holder);
  }

  delete(key: string): void {
    this.#holders.delete(key);
  }

  /** Others work on the Machines of a namespace from now on. */
  forget(namespace: string): void {
    for (const [key, holder] of this.#holders) if (holder.namespace === namespace) this.#holders.delete(key);
  }
}
