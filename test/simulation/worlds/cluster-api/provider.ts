import { DriverError } from '../../../../pkg/driver/error.ts';
import type { MachineRequest } from '../../../../pkg/driver/driver.ts';
import { isMembers, memberOf } from '../../api-server/json.ts';
import type { StoredObject } from '../../api-server/stored-object.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { infrastructurePath } from './kinds.ts';

const FINALIZER = 'infrastructure.cluster.x-k8s.io/sim';
/** How long it takes until it notices a change. */
const LOOK_AFTER_MS = 300;

/** An infrastructure provider of Cluster API, which makes VMs of the simulated cloud by its driver. It does all that its contract asks for. */
export class Provider {
  readonly #world: MachinesWorld;
  /** Names of objects whose VM is being made or deleted. */
  readonly #busy = new Set<string>();

  private constructor(world: MachinesWorld) {
    this.#world = world;
  }

  /** Begins to look after the objects in the namespace of a world. */
  static serve(world: MachinesWorld): void {
    const provider = new Provider(world);
    world.servers.control.objects.onChange(({ plural }, { type, object }) => {
      const isHere = object.metadata.namespace === world.namespace;
      if (plural === 'simmachines' && isHere && type !== 'DELETED') provider.#lookSoon(object.metadata.name);
    });
  }

  #lookSoon(name: string): void {
    this.#world.time.schedule(LOOK_AFTER_MS, () => void this.#look(name));
  }

  async #look(name: string): Promise<void> {
    const object = this.#read(name);
    if (object === undefined || this.#busy.has(name)) return;
    const { deletionTimestamp, finalizers = [], ownerReferences = [] } = object.metadata;
    if (deletionTimestamp === undefined && !finalizers.includes(FINALIZER)) {
      this.#change(name, { metadata: { finalizers: [...finalizers, FINALIZER] } });
      return;
    }
    // It is begun once somebody owns it, who has its bootstrap data.
    const isToMake = deletionTimestamp === undefined && ownerReferences.length > 0 && !hasVM(object);
    if (!isToMake && deletionTimestamp === undefined) return;
    this.#busy.add(name);
    try {
      if (isToMake) await this.#make(object);
      else await this.#delete(object);
    } finally {
      this.#busy.delete(name);
    }
    this.#lookSoon(name);
  }

  async #make(object: StoredObject): Promise<void> {
    const { name } = object.metadata;
    const { providerID } = await this.#world.simulation.driver.createMachine(requestOf(object), CALL);
    if (this.#read(name)?.metadata.uid !== object.metadata.uid) return;
    this.#change(name, { spec: { providerID } });
    this.#change(name, { status: { initialization: { provisioned: true } } }, '/status');
  }

  async #delete(object: StoredObject): Promise<void> {
    const { name, finalizers = [] } = object.metadata;
    if (!finalizers.includes(FINALIZER)) return;
    await this.#world.simulation.driver.deleteMachine(requestOf(object), CALL).catch((err: unknown) => {
      if (!DriverError.hasCode(err, 'NotFound')) throw err;
    });
    this.#change(name, { metadata: { finalizers: finalizers.filter((one) => one !== FINALIZER) } });
  }

  #read(name: string): StoredObject | undefined {
    const answer = this.#world.servers.control.handle({
      method: 'GET',
      path: infrastructurePath(this.#world.namespace, name),
    });
    return answer.code === 200 && 'body' in answer ? (answer.body as StoredObject) : undefined;
  }

  #change(name: string, body: object, subresource = ''): void {
    const path = `${infrastructurePath(this.#world.namespace, name)}${subresource}`;
    const contentType = 'application/merge-patch+json';
    this.#world.trace.add(`provider PATCH ${path} ${JSON.stringify(body)}`);
    this.#world.servers.control.handle({ method: 'PATCH', path, body, contentType });
  }
}

function hasVM(object: StoredObject): boolean {
  const { spec } = object;
  return isMembers(spec) && memberOf(spec, 'providerID') !== undefined;
}

/** Of nobody who could lose a Lease. */
const CALL = {
  signal: new AbortController().signal,
  timeoutMs: 600_000,
  fencingToken: 0n,
  cluster: 'provider',
} as const;

function requestOf({ metadata }: StoredObject): MachineRequest {
  const { name, namespace = '', uid } = metadata;
  const meta = { name, namespace, uid, resourceVersion: '1', creationTimestamp: metadata.creationTimestamp };
  return {
    machine: { metadata: meta, spec: {} },
    machineClass: { metadata: { ...meta, name: 'sim' }, provider: 'sim', providerSpec: { zone: 'a' } },
    secretData: { userData: Buffer.from('data') },
  };
}
