/** Keeps Machines that do not tolerate it away from a pool; with effect NoExecute also those that are there. */
export interface IronCoreTaint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** What a Machine puts up with. Without a key or an effect: any of them. */
export interface Toleration {
  readonly key?: string;
  /** Absent: Equal. */
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

/** Whether each of the taints is tolerated by one of the tolerations; all effects count alike. */
export function tolerated(taints: readonly IronCoreTaint[] = [], tolerations: readonly Toleration[] = []): boolean {
  return taints.every((taint) => tolerations.some((toleration) => tolerates(toleration, taint)));
}

/** The first taint that drives out a Machine with these tolerations from where it is; undefined: none does. */
export function drivingOut(
  taints: readonly IronCoreTaint[] = [],
  tolerations: readonly Toleration[] | undefined,
): IronCoreTaint | undefined {
  return taints.find((taint) => taint.effect === 'NoExecute' && !tolerated([taint], tolerations));
}

function tolerates({ key = '', operator = '', value = '', effect = '' }: Toleration, taint: IronCoreTaint): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  return (operator === '' || operator === 'Equal') && value === (taint.value ?? '');
}
