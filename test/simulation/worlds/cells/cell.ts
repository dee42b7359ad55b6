import { isBeingDeleted, type KubeObject } from '../../../../pkg/apis/meta.ts';
import type { Node, Secret } from '../../../../pkg/apis/wire.ts';
import {
  CELL_MOVES_TO_ANNOTATION,
  CELL_SETTING_PREFIX,
  FORCE_DELETION_LABEL,
  ROLE_BINDING_FINALIZER,
} from '../../../../pkg/apis/machine/v1alpha1/labels.ts';
import { shardOf } from '../../../../pkg/operator/cells/assignment.ts';
import { membersIn } from '../../../../pkg/operator/cells/claim-leases.ts';
import { targetLeaseName } from '../../../../pkg/operator/cells/lease-names.ts';
import { whereNodesAre } from '../../../../pkg/operator/cells/nodes-of-cell.ts';
import { MACHINES_ROLE_BINDING } from '../../../../pkg/operator/preflight/roles/machinist.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import type { Backup } from '../../api-server/objects.ts';
import { LONE_LABEL } from '../../world/ledger.ts';
import { CELL_LABEL, MachinesWorld, NAMESPACE, POOL } from '../../world/machines-world.ts';
import { Pool } from '../../world/pool.ts';
import { kubeconfigOf } from '../../world/simulated-process.ts';
import { targetAt, targetURL } from '../../world/target-address.ts';

/** Label of the namespaces that are managed. */
export const SELECTED_LABEL = 'cell';
/** Name of the Secret with the kubeconfig. */
export const KUBECONFIG_SECRET = 'target';

/** How long a restore of its target cluster takes, and how long until kubelets are started after it, at most. */
const RESTORE_MS = 60_000;
const KUBELETS_MS = 600_000;
/** Finalizer of whoever keeps the kubeconfig of a namespace that is being deleted until it is not needed any more. */
const KEEPER = 'example.com/kept-for-machines';
/** How often they look. */
const KEEPER_MS = 10_000;
const ROLE_BINDINGS = 'rbac.authorization.k8s.io/v1';

/** Names of one server. */
const SERVER_NAMES = ['api', 'other-api'] as const;

/** A namespace with a pool, whose machines join a target cluster of its own. */
export class Cell {
  readonly world: MachinesWorld;
  readonly pool: Pool;
  /** Whether its users want it to be managed. */
  isWanted = true;
  readonly #isNamed: boolean;
  #serverName = 0;
  #tokens = 0;
  #backup: Backup | undefined;
  /** The last one that led to its target cluster. */
  #good = '';

  private constructor(world: MachinesWorld, isNamed: boolean) {
    this.world = world;
    this.#isNamed = isNamed;
    this.pool = new Pool(world);
    world.servers.control.objects.onRestore(() => this.#keep());
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
      cell: {
        of,
        namespace,
        sharesTarget: of.options.flags['cell-kubeconfig-secret'] === undefined,
        lease: `machinist-shard-${shardOf(namespace, shards)}`,
      },
    });
    return new Cell(world, of.options.flags['cell-namespaces'] !== undefined);
  }

  get namespace(): string {
    return this.world.namespace;
  }

  /** Whether somebody has asked for its pool. */
  get isThere(): boolean {
    return this.world.pool !== undefined;
  }

  /** Whether it is to be managed: its namespace has the label, or the role. */
  get isSelected(): boolean {
    if (this.#isNamed) return this.#roleBinding !== undefined;
    return this.#namespace?.metadata.labels?.[SELECTED_LABEL] !== undefined;
  }

  /** Whether its namespace is being deleted. */
  get isEnding(): boolean {
    const namespace = this.#namespace;
    return namespace !== undefined && isBeingDeleted(namespace);
  }

  /** Whether all that its Machines need to be deleted stays until they are, when its namespace is deleted. */
  get mayEnd(): boolean {
    const isManaged = this.isThere && this.isSelected && !this.isEnding;
    return isManaged && this.#hasGoodKubeconfig && this.#settings.length === 0 && this.#isHeld;
  }

  /** Whether its class waits for its Machines. */
  get #isHeld(): boolean {
    const found = this.#get(this.world.pathOf('machineclasses', POOL)) as KubeObject | undefined;
    return (found?.metadata.finalizers ?? []).length > 0;
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
    if (this.world.sharesTarget) return;
    for (const { metadata, spec } of this.world.leases) {
      if (spec?.holderIdentity !== this.namespace || metadata.name === targetLeaseName(this.#targetUID)) continue;
      for (const machine of this.world.machines) this.pool.ledger.askedFor(machine.metadata.name);
      this.world.act('DELETE', `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${metadata.name}`, {});
    }
  }

  /**
   * As the documentation has it where all have one target cluster: of a namespace that was not managed for a while, and of whose Nodes none is
   * there any more, nobody but its users knows that they are not in another cluster.
   */
  #replaceLost(): void {
    const { sharesTarget, machines, nodes, leases } = this.world;
    const get = (name: string): Node | undefined => nodes.find(({ metadata }) => metadata.name === name);
    if (!sharesTarget || whereNodesAre(machines, { get }) !== 'elsewhere') return;
    const uid = this.#targetUID;
    const claim = leases.find(({ metadata }) => metadata.name === targetLeaseName(uid));
    if (claim !== undefined && membersIn(claim.metadata).includes(this.namespace)) return;
    this.annotate({ [CELL_MOVES_TO_ANNOTATION]: uid });
  }

  get #targetUID(): string {
    const answer = this.world.servers.target.handle({ method: 'GET', path: '/api/v1/namespaces/kube-system' });
    return ('body' in answer ? (answer.body as KubeObject) : undefined)?.metadata.uid ?? '';
  }

  /** What its users want is there, and nothing that is wrong: its namespace, its Secret, its pool. */
  setRight(): void {
    this.#create();
    const settings = this.#settings;
    if (settings.length > 0) this.annotate(Object.fromEntries(settings.map((name) => [name, null])));
    if (!this.#hasGoodKubeconfig) this.lead(this.namespace);
    if (this.isWanted) this.#replaceLost();
    if (this.isEnding) return;
    if (!this.isThere) this.world.furnishPool();
    if (this.isSelected !== this.isWanted) this.select(this.isWanted);
  }

  /** It comes to be with a Secret that was copied from another one. */
  copyOf(other: string): void {
    this.#create();
    this.lead(other);
    this.world.furnishPool();
    this.select(true);
  }

  /** Puts the label on its namespace, or takes it off; the role, where it is named. */
  select(isSelected: boolean): void {
    if (this.#namespace === undefined || this.isEnding) return;
    if (this.#isNamed) this.#grant(isSelected);
    else this.#change({ labels: { [SELECTED_LABEL]: isSelected ? 'true' : null } });
  }

  deleteDeployment(): void {
    this.world.act('DELETE', this.world.pathOf('machinedeployments', POOL), {});
  }

  /**
   * Its namespace is deleted with all that is in it. A kubeconfig that is not kept is lost to whoever does not have it yet: no process may
   * begin to manage it then.
   */
  deleteNamespace({ isKept }: { readonly isKept: boolean }): void {
    for (const machine of this.world.machines) this.pool.ledger.askedFor(machine.metadata.name);
    const path = `${this.#path}/secrets/${KUBECONFIG_SECRET}`;
    if (isKept && !this.world.sharesTarget) this.world.act('PATCH', path, { metadata: { finalizers: [KEEPER] } });
    this.world.act('DELETE', this.#path, {});
    this.#keep();
  }

  /** A backup of its target cluster is made. */
  backUpTarget(): void {
    this.#backup = this.world.servers.target.objects.backup();
  }

  /** The last backup of its target cluster is restored. */
  restoreTarget(random: Random): void {
    const { weather, time, workload, sharesTarget } = this.world;
    if (sharesTarget) return;
    // Where volumes and pods are is not known after a restore.
    if (workload !== undefined || this.#backup === undefined || weather.isDown) return;
    weather.isDown = true;
    this.world.restoreTarget(this.#backup, random() * KUBELETS_MS);
    this.pool.ledger.targetSetBack();
    time.schedule(random() * RESTORE_MS, () => {
      weather.isDown = false;
    });
  }

  /** A user makes a Machine, of any name. */
  createLone(name: string): KubeObject | undefined {
    const { world } = this;
    const path = world.pathOf('machines');
    if (this.isEnding || this.#get(`${path}/${name}`) !== undefined) return undefined;
    if (this.#get(world.pathOf('machineclasses', POOL)) === undefined) return undefined;
    return world.act('POST', path, {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'Machine',
      metadata: { name, labels: { [LONE_LABEL]: 'true' } },
      spec: {
        class: { kind: 'MachineClass', name: POOL },
        drainTimeout: '5m',
        nodeTemplate: { metadata: { labels: { [CELL_LABEL]: this.namespace } } },
      },
    }) as KubeObject;
  }

  /** The same of one that a former manager has made, with its VM, which has not become a Node. */
  bringLone(name: string): void {
    const machine = this.createLone(name);
    if (machine === undefined) return;
    const { namespace, world } = this;
    const { providerID } = world.cloud.plant({
      machineName: name,
      namespace,
      className: POOL,
      machineUID: machine.metadata.uid,
      zone: namespace,
    });
    world.act('PATCH', world.pathOf('machines', name), { spec: { providerID } });
  }

  /** And deletes those, perhaps by force. */
  deleteLone(random: Random): void {
    const { world, pool } = this;
    for (const { metadata } of world.machines) {
      if (metadata.labels?.[LONE_LABEL] === undefined || metadata.deletionTimestamp !== undefined) continue;
      pool.ledger.askedFor(metadata.name);
      if (random() < 0.3) this.forceDeletion(metadata.name);
      world.act('DELETE', world.pathOf('machines', metadata.name), {});
    }
  }

  forceDeletion(name: string): void {
    const labels = { [FORCE_DELETION_LABEL]: 'True' };
    this.world.act('PATCH', this.world.pathOf('machines', name), { metadata: { labels } });
  }

  /** Users delete what nobody knows any more, after a restore. */
  deleteForgottenVMs(): void {
    const { cloud, machines } = this.world;
    const known = new Set(machines.map(({ metadata }) => metadata.uid));
    const isForgotten = (uid: string | undefined): boolean => uid === undefined || !known.has(uid);
    for (const vm of cloud.all()) if (isForgotten(vm.machineUID)) cloud.remove(vm.providerID, 'vanished');
  }

  #keep(): void {
    if (!this.isEnding) return;
    const path = `${this.#path}/secrets/${KUBECONFIG_SECRET}`;
    const isKept = (this.#get(path) as KubeObject | undefined)?.metadata.finalizers?.includes(KEEPER) === true;
    if (isKept && this.world.machines.length === 0) this.world.act('PATCH', path, { metadata: { finalizers: null } });
    else this.world.time.schedule(KEEPER_MS, () => this.#keep());
  }

  #grant(isGranted: boolean): void {
    const collection = `/apis/${ROLE_BINDINGS}/namespaces/${this.namespace}/rolebindings`;
    const path = `${collection}/${MACHINES_ROLE_BINDING}`;
    if (isGranted) {
      if (this.#roleBinding !== undefined) return;
      const metadata = { name: MACHINES_ROLE_BINDING, finalizers: [ROLE_BINDING_FINALIZER] };
      this.world.act('POST', collection, { metadata, roleRef: {}, subjects: [] });
    } else if (this.#roleBinding !== undefined) {
      // Nobody waits for what it is for.
      this.world.act('PATCH', path, { metadata: { finalizers: null } });
      this.world.act('DELETE', path, {});
    }
  }

  get #roleBinding(): unknown {
    return this.#get(`/apis/${ROLE_BINDINGS}/namespaces/${this.namespace}/rolebindings/${MACHINES_ROLE_BINDING}`);
  }

  get #settings(): readonly string[] {
    return Object.keys(this.#namespace?.metadata.annotations ?? {}).filter(isSetting);
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
    // Nothing new comes to be in what is being deleted.
    if (this.world.sharesTarget) return;
    if (this.#namespace === undefined || (this.isEnding && !isThere)) return;
    if (kubeconfig === '') {
      if (isThere) this.world.act('DELETE', `${path}/${KUBECONFIG_SECRET}`, {});
      return;
    }
    const data = { kubeconfig: Buffer.from(kubeconfig).toString('base64') };
    if (isThere) this.world.act('PATCH', `${path}/${KUBECONFIG_SECRET}`, { data });
    else this.world.act('POST', path, { metadata: { name: KUBECONFIG_SECRET }, data });
  }

  get #hasGoodKubeconfig(): boolean {
    return this.world.sharesTarget || this.#kubeconfig === this.#good;
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

  #create(): void {
    if (this.#namespace === undefined)
      this.world.act('POST', '/api/v1/namespaces', { metadata: { name: this.namespace } });
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
