/** Address of the API server of a cell's target cluster, as another cell, or the same, names it. */
export interface TargetAddress {
  readonly target: string;
  readonly asker: string;
  /** One server may have several. */
  readonly name?: string;
}

const DOMAIN = 'targets';

/** For a kubeconfig. */
export function targetURL({ target, asker, name = 'api' }: TargetAddress): string {
  return `https://${name}.${target}.${asker}.${DOMAIN}`;
}

/** The cell whose target cluster a host is a server of. */
export function targetAt(host: string): string | undefined {
  return partsOf(host)?.[1];
}

/** The cell that asks at that host. */
export function askerAt(host: string): string | undefined {
  return partsOf(host)?.[2];
}

function partsOf(host: string): readonly string[] | undefined {
  const parts = host.split('.');
  return parts.at(-1) === DOMAIN ? parts : undefined;
}
