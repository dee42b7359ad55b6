/** Names another object: of the same namespace, or of the cluster where its kind has none. */
export interface Reference {
  readonly name: string;
}

/** Names the very object, not one that has taken its name since. */
export interface OwnedReference extends Reference {
  readonly uid: string;
}

/** As IronCore has conditions: those of Machines have no observedGeneration. */
export interface IronCoreCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
  readonly lastTransitionTime?: string;
}
