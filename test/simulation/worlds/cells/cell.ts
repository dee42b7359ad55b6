import type { KubeObject } from '../../../../pkg/apis/meta.ts';
import type { Secret } from '../../../../pkg/apis/wire.ts';
import { CELL_SETTING_PREFIX } from '../../../../pkg/apis/machine/v1alpha1/labels.ts';
import { shardOf } from '../../../../pkg/operator/cells/assignment.ts';
import { targetLeaseName } from '../../../../pkg/operator/cells/lease-names.ts';
import { MachinesWorld, NAMESPACE } from '../../world/machines-world.ts';
import { Pool } from '../../world/pool.ts';
import { kubeconfigOf } from '../../world/simulated-process.ts';
import { targetAt, targetURL } from '../../world/target-address.ts';

/** Label of the namespaces that are managed. */
export const SELECTED_LABEL = 'cell';
/** Name of the Secret with the kubeconfig. */
export const KUBECONFIG_SECRET = 'target';

/** Names of one server. */
const SERVER_NAMES = ['api', 'other-api'] as const;

/** A namespace with a pool, whose machines join a target cluster of its own. */
export class Cell {
  readonly world: MachinesWorld;
  readonly pool: Pool;
  /** Whether its users want it to be managed. */
  isWanted = true;
  #serverName = 0;
  #tokens = 0;
  /** The last one that led to its target cluster. */
  #good = '';

  private constructor(world: MachinesWorld) {
    this.world = world;
    this.pool = new Pool(world);
  }

  /** Makes its target cluster and its cloud, and nothing else yet; `shards`: of how many its shard is one. */
  static async create(
    of: MachinesWorld,
    namespace: string,
    shards: number,
    options: Partial<Pick<MachinesWorld['options'], 'replicas' | 'strategy' | 'pods'>>,
  ): Promise<Cell> {
    const world = await MachinesWorld.create({
      ...of.options,
      ...options,
      flags: {},
      hasTarget: true,
      furnish: () => undefined,
      cell: { of, namespace, lease: `machinist-shard-${shardOf(namespace, shards)}` },
    });
    return new Cell(world);
  }

  get namespace(): string {
    return this.world.namespace;
  }

  /** Whether somebody has asked for its pool. */
  get isThere(): boolean {
    return this.world.pool !== undefined;
  }

  /** Whether its namespace has the label. */
  get isSelected(): boolean {
    return this.#namespace?.metadata.labels?.[SELECTED_LABEL] !== undefined;
  }

  /** The cell whose target cluster its Secret leads to. */
  get target(): string | undefined {
    const [, server] = /"server":"([^"]+)"/.exec(this.#kubeconfig ?? '') ?? [];
    return server === undefined ? undefined : targetAt(new URL(server).hostname);
  }

  /** Whether its pool is as it is asked for, and that is no status of a past that was restored. */
  get isAsAsked(): boolean {
    const { machines, cloud } = this.world;
    return this.pool.isAsAsked() && machines.every(({ spec }) => cloud.get(spec?.providerID ?? '') !== undefined);
  }

  /** As the runbook has it where a namespace got the target cluster of another one first, and has Machines by now. */
  leaveWrongTarget(): void {
    for (const { metadata, spec } of this.world.leases) {
      if (spec?.holderIdentity !== this.namespace || metadata.name === targetLeaseName(this.#targetUID)) continue;
      for (const machine of this.world.machines) this.pool.ledger.askedFor(machine.metadata.name);
      this.world.act('DELETE', `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${metadata.name}`, {});
    }
  }

  get #targetUID(): string {
    const answer = this.world.servers.target.handle({ method: 'GET', path: '/api/v1/namespaces/kube-system' });
    return ('body' in answer ? (answer.body as KubeObject) : undefined)?.metadata.uid ?? '';
  }

  /** What its users want is there, and nothing that is wrong: its namespace, its Secret, its pool. */
  setRight(): void {
    if (this.#namespace === undefined)
      this.world.act('POST', '/api/v1/namespaces', { metadata: { name: this.namespace } });
    const settings = Object.keys(this.#namespace?.metadata.annotations ?? {}).filter(isSetting);
    if (settings.length > 0) this.annotate(Object.fromEntries(settings.map((name) => [name, null])));
    if (this.#kubeconfig !== this.#good) this.lead(this.namespace);
    if (!this.isThere) this.world.furnishPool();
    if (this.isSelected !== this.isWanted) this.select(this.isWanted);
  }

  /** Puts the label on its namespace, or takes it off. */
  select(isSelected: boolean): void {
    this.#change({ labels: { [SELECTED_LABEL]: isSelected ? 'true' : null } });
  }

  annotate(annotations: Readonly<Record<string, string | null>>): void {
    this.#change({ annotations });
  }

  /** Its kubeconfig gets another token, and another name of the server if `isMoved`. */
  rotate({ isMoved }: { readonly isMoved: boolean }): void {
    if (isMoved) this.#serverName = (this.#serverName + 1) % SERVER_NAMES.length;
    this.lead(this.namespace);
  }

  /** Its Secret leads to the target cluster of a cell. */
  lead(target: string): void {
    this.#tokens += 1;
    const name = SERVER_NAMES[this.#serverName]!;
    const kubeconfig = kubeconfigOf(targetURL({ target, asker: this.namespace, name }), `token-${this.#tokens}`);
    if (target === this.namespace) this.#good = kubeconfig;
    this.setKubeconfig(kubeconfig);
  }

  /** Its Secret has this text; '': it is gone. */
  setKubeconfig(kubeconfig: string): void {
    const path = `${this.#path}/secrets`;
    const isThere = this.#get(`${path}/${KUBECONFIG_SECRET}`) !== undefined;
    if (kubeconfig === '') {
      if (isThere) this.world.act('DELETE', `${path}/${KUBECONFIG_SECRET}`, {});
      return;
    }
    const data = { kubeconfig: Buffer.from(kubeconfig).toString('base64') };
    if (isThere) this.world.act('PATCH', `${path}/${KUBECONFIG_SECRET}`, { data });
    else this.world.act('POST', path, { metadata: { name: KUBECONFIG_SECRET }, data });
  }

  get #kubeconfig(): string | undefined {
    const { data } = (this.#get(`${this.#path}/secrets/${KUBECONFIG_SECRET}`) as Secret | undefined) ?? {};
    const encoded = data?.['kubeconfig'];
    return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString();
  }

  get #path(): string {
    return `/api/v1/namespaces/${this.namespace}`;
  }

  get #namespace(): KubeObject | undefined {
    return this.#get(this.#path) as KubeObject | undefined;
  }

  #change(metadata: object): void {
    this.world.act('PATCH', this.#path, { metadata });
  }

  #get(path: string): unknown {
    const answer = this.world.servers.control.handle({ method: 'GET', path });
    return answer.code === 200 && 'body' in answer ? answer.body : undefined;
  }
}

/** An annotation that takes the place of a flag. */
export function settingNamed(flag: string): string {
  return `${CELL_SETTING_PREFIX}/${flag}`;
}

function isSetting(annotation: string): boolean {
  return annotation.startsWith(settingNamed(''));
}
