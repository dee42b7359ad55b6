import { contractLabel, pluralOf, type ContractVersion } from '../pkg/worlds/cluster-api/api/contract.ts';
import { controllerOf, isBeingDeleted, refOf, type KubeObject } from '../pkg/apis/meta.ts';
import { ApiError, ignoreAlreadyExists, ignoreNotFound } from '../pkg/kube/client/errors.ts';
import { mergePatch, statusPatch, strategicPatch } from '../pkg/kube/client/patch.ts';
import { customResourceDefinitions, nodes, providerResource } from '../pkg/kube/client/resource.ts';
import type { Resource } from '../pkg/apis/resource.ts';
import type { SimKind, SimObject } from './contract-simulator.ts';
import type { KubeSession } from './integration/kube-session.ts';

/** What comes of an object: it is provisioned, or reports this instead. */
export type RequestOutcome = { readonly status: object } | 'provisioned';

const FINALIZER = 'sim.example.com/instance';
const HEALTHY = ['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({ type, status: 'False' }));

/**
 * An infrastructure provider of Cluster API: what a Machine owns becomes an instance and, if wanted, a Node; what is deleted is given up when
 * the instance is gone. It does what contracts ask and knows nothing else, of whichever kind.
 */
export class SimProvider {
  /** UIDs of all objects that ever became an instance, by name. */
  readonly instances = new Map<string, Set<string>>();
  /** Decides what comes of an object. */
  outcomeOf: (object: SimObject) => RequestOutcome = () => 'provisioned';
  readonly #user: KubeSession;
  readonly #resource: Resource<SimObject>;
  readonly #contract: ContractVersion;
  /** Whether instances become Nodes. */
  hasNodes = false;
  /** What it could not do; a test asserts that there is nothing. */
  readonly failures: unknown[] = [];

  private constructor(user: KubeSession, resource: Resource<SimObject>, contract: ContractVersion) {
    this.#user = user;
    this.#resource = resource;
    this.#contract = contract;
  }

  /** Begins to work for a kind that is installed. */
  static async start(
    user: KubeSession,
    namespace: string,
    kind: SimKind,
    contract: ContractVersion,
  ): Promise<SimProvider> {
    const name = `${pluralOf(kind.kind)}.${kind.apiGroup}`;
    const definition = await user.reader.get(customResourceDefinitions, { name });
    const version = definition.metadata.labels?.[contractLabel(contract)] ?? '';
    const where = { group: kind.apiGroup, version, plural: pluralOf(kind.kind), kind: kind.kind };
    const resource = providerResource(where) as Resource<SimObject>;
    const provider = new SimProvider(user, resource, contract);
    user.informer(resource, { namespace }).onChange((_old, current) => {
      if (current !== undefined) void provider.#begin(current);
    });
    return provider;
  }

  /** How many objects of that name ever became an instance. */
  instancesOf(name: string): number {
    return this.instances.get(name)?.size ?? 0;
  }

  /** What has changed meanwhile is told of once more. */
  async #begin(object: SimObject): Promise<void> {
    try {
      await this.#reconcile(object);
    } catch (err) {
      if (!ApiError.is(err, 'Conflict', 'NotFound', 'Invalid')) this.failures.push(err);
    }
  }

  async #reconcile(object: SimObject): Promise<void> {
    const { finalizers = [], name, uid } = object.metadata;
    if (isBeingDeleted(object)) {
      if (!finalizers.includes(FINALIZER)) return;
      if (this.hasNodes) await this.#leave(name);
      return await this.#patch(object, { metadata: { finalizers: finalizers.filter((one) => one !== FINALIZER) } });
    }
    // As providers do: nothing is made for what no Machine owns.
    if (controllerOf(object)?.kind !== 'Machine') return;
    if (!finalizers.includes(FINALIZER)) {
      return await this.#patch(object, { metadata: { finalizers: [...finalizers, FINALIZER] } });
    }
    const fate = this.outcomeOf(object);
    if (fate !== 'provisioned') return await this.#report(object, fate.status);
    this.instances.set(name, (this.instances.get(name) ?? new Set()).add(uid));
    const providerID = `sim://${uid}`;
    if (object.spec?.['providerID'] !== providerID) return await this.#patch(object, { spec: { providerID } });
    if (this.hasNodes) await this.#join(name, providerID);
    await this.#report(object, {
      ...(this.#contract === 'v1beta2' ? { initialization: { provisioned: true } } : { ready: true }),
      addresses: [{ type: 'InternalIP', address: '10.0.0.7' }],
      conditions: [{ type: 'Ready', status: 'True', reason: 'Up' }],
    });
  }

  async #join(name: string, providerID: string): Promise<void> {
    const { writer } = this.#user;
    const node = { metadata: { name }, spec: { providerID } };
    const made = await writer.create('create', nodes, node).catch(ignoreAlreadyExists);
    if (made === undefined) return;
    const conditions = [{ type: 'Ready', status: 'True' }, ...HEALTHY];
    await writer.patch('change', nodes, { name }, strategicPatch(made, { status: { conditions } }, 'status'));
  }

  async #leave(name: string): Promise<void> {
    const { reader, writer } = this.#user;
    const node = await reader.get(nodes, { name }).catch(ignoreNotFound);
    if (node === undefined) return;
    // Its kubelet has gone with the instance.
    const conditions = [{ type: 'Ready', status: 'Unknown' }];
    await writer.patch('change', nodes, { name }, strategicPatch(node, { status: { conditions } }, 'status'));
    await writer.delete('destroy', nodes, { name }, { uid: node.metadata.uid });
  }

  async #patch(object: SimObject, change: object): Promise<void> {
    const patch = mergePatch(object as KubeObject, change);
    await this.#user.writer.patch('change', this.#resource, refOf(object), patch);
  }

  async #report(object: SimObject, status: object): Promise<void> {
    if (isWithin(status, object.status)) return;
    const patch = statusPatch(object as KubeObject & { status?: object }, status as never);
    await this.#user.writer.patch('change', this.#resource, refOf(object), patch);
  }
}

/** Whether all that is to be written stands there already. */
function isWithin(status: object, there: object | undefined): boolean {
  return Object.entries(status).every(
    ([name, value]) => JSON.stringify(value) === JSON.stringify((there as Record<string, unknown> | undefined)?.[name]),
  );
}
