import { readBootstrap } from '../api/bootstrap.ts';
import { definitionNameOf } from '../api/contract.ts';
import { readInfrastructure } from '../api/infrastructure.ts';
import { DELETION_HOOK } from '../api/keys.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import { isBeingDeleted, refOf, type KubeObject } from '../../../apis/meta.ts';
import type { NodeAddress } from '../../../apis/machine/v1alpha1/machine.ts';
import type {
  Capabilities,
  CreatedMachine,
  Driver,
  DriverCall,
  ListedMachine,
  MachineRequest,
  VirtualMachine,
} from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import type { New, Reader, Writer } from '../../../kube/client/client.ts';
import { ignoreAlreadyExists, isConflict, isNotFound } from '../../../kube/client/errors.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../../kube/client/patch.ts';
import { secrets } from '../../../kube/client/resource.ts';
import type { Resource } from '../../../apis/resource.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../api/resources.ts';
import type { Logger } from '../../../base/log/logger.ts';
import { driverFailure } from '../../../drivers/api-failure.ts';
import {
  isMachineName,
  machineOf as identityOf,
  type MachineIdentity,
  notFound,
  requireMachineName,
} from '../../../drivers/machine-identity.ts';
import { userDataOf } from '../../../drivers/spec-fields.ts';
import { reportingFailures } from '../../../drivers/reported-failure.ts';
import { deletionText, GIVEN_SECRET_PATH, unprovisioned, type Reported } from './failure.ts';
import type { ServedKind } from './kinds.ts';
import { classLabelOf, isCreatedFor, marksOf, parsePlaceholderID, placeholderID, type Marks } from './marks.ts';
import { expectedNodeName } from './node-name.ts';
import { cloned, clonedFrom, clusterAPIMachineOf, userDataSecret, userDataSecretName, type Plan } from './objects.ts';
import { obstacleIn } from './pieces.ts';
import { ProviderKinds } from './provider-kinds.ts';
import { parseProviderSpec, templatesIn, type ClusterAPIProviderSpec } from './provider-spec.ts';
import { hasDeletionHook, nextRemoval } from './removal.ts';
import { CLASS_LABEL, CLUSTER_API_MACHINE_UID_LABEL } from './tags.ts';
import { strayPiece, NamespaceReader, type ReadPiece } from './namespace-reader.ts';

/** What the driver works with: the cluster whose Machines of Cluster API the machines are. */
export interface ClusterAPIDriverDeps {
  readonly reader: Reader;
  readonly writer: Writer;
  /** `apiVersion` under which a kind is served now. */
  readonly servedAs: (resource: Resource<KubeObject>) => string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly close: () => Promise<void>;
}

const CAPABILITIES: Capabilities = {
  contractVersion: 'v1',
  name: 'cluster-api',
  idempotentCreate: true,
  listScope: 'class',
  methods: new Set(['ListMachines', 'GetVolumeIDs'] as const),
};

type Subject = Pick<Marks, 'cluster' | 'machineName' | 'machineUID'> & { readonly namespace: string };

/**
 * Of a machine whose objects a call before has found and is deleting. When none is left, that is no VM that is missing: the cluster of the driver is
 * the same for all classes, and so is the namespace.
 */
function deletionState({ namespace, machineUID }: Subject): string {
  return `deleting the objects of machine ${machineUID} in namespace ${namespace}`;
}

function lastKnownStateOf({ machine }: MachineRequest): string | undefined {
  return 'status' in machine ? machine.status?.lastKnownState : undefined;
}

/**
 * A driver whose VMs are Machines of Cluster API, on whatever infrastructure provider: it makes them with all that they name, and takes
 * them away. Whoever looks after them, our controller or Cluster API itself, makes no difference to it. It remembers nothing but, for a minute,
 * which kinds of providers there are: names are the machine's, and labels say whose an object is.
 */
export class ClusterAPIDriver implements Driver {
  readonly #deps: ClusterAPIDriverDeps;
  readonly #kinds: ProviderKinds;

  constructor(deps: ClusterAPIDriverDeps) {
    this.#deps = deps;
    this.#kinds = new ProviderKinds(deps);
  }

  async capabilities(): Promise<Capabilities> {
    return await Promise.resolve(CAPABILITIES);
  }

  /** Makes what is not there yet, in an order in which nothing begins to run before it is found again; nobody waits in here. */
  async createMachine(request: MachineRequest, call: DriverCall): Promise<CreatedMachine> {
    const identity = identityOf(request, call);
    requireMachineName(identity);
    const { cluster, namespace, name: machineName, uid: machineUID } = identity;
    return await this.#run(request, async () => {
      const spec = parseProviderSpec(request.machineClass.providerSpec);
      const userData = spec.bootstrap.from === 'userData' ? userDataOf(request.secretData) : undefined;
      if (machineUID === undefined) throw new DriverError('InvalidArgument', 'machine.metadata.uid: must be set');
      const className = request.machineClass.metadata.name;
      const plan: Plan = { namespace, spec, marks: { cluster, className, machineName, machineUID } };
      const world = this.#world(namespace, call);
      const pieces = await world.pieces(machineName, templatesIn(request.machineClass.providerSpec));
      const obstacle = obstacleIn(pieces, plan.marks);
      if (obstacle?.kind === 'going') await this.#releaseAll(pieces, call);
      if (obstacle !== undefined) throw inTheWay(obstacle);
      const machine = machineIn(pieces) ?? (await this.#make(world, plan, userData));
      if (userData !== undefined) await this.#own(world, machine);
      const vm = vmOf(machine);
      if (vm !== undefined) return { ...vm, lastKnownState: undefined };
      const givenSecret = spec.bootstrap.from === 'secret' ? spec.bootstrap.name : undefined;
      throw unprovisioned({ machine, ...toldIn(pieces), givenSecret, nowMs: this.#deps.clock.now() });
    });
  }

  /** Not announced: Machines of Cluster API are complete when they are provisioned. */
  async initializeMachine(): Promise<VirtualMachine> {
    return await Promise.reject(
      new DriverError('Unimplemented', 'machines of Cluster API do not require initialization'),
    );
  }

  async getMachineStatus(request: MachineRequest, call: DriverCall): Promise<VirtualMachine> {
    return await this.#run(request, async () => {
      const subject = await this.#subject(request, call);
      if (subject === undefined) throw notFound(identityOf(request, call));
      const world = this.#world(subject.namespace, call);
      const machine = await world.machine(subject.machineName);
      const vm = machine !== undefined && isCreatedFor(machine, subject) ? vmOf(machine) : undefined;
      if (vm !== undefined) return vm;
      const pieces = await this.#ours(world, subject, request);
      const [infrastructure] = pieces.filter(({ part }) => part === 'infrastructure');
      // Before its Machine takes it over, an id is not the last word of the provider.
      const isLeft = machineIn(pieces) === undefined;
      const left = isLeft ? infrastructure && vmLeftIn(infrastructure, subject.machineName) : undefined;
      if (left !== undefined) return left;
      if (pieces.length === 0) throw notFound(identityOf(request, call));
      // Without a VM: the creation goes on with what is there.
      const there = pieces.map(({ what }) => what).join(', ');
      throw new DriverError('Uninitialized', `not provisioned yet; ${there} exist`);
    });
  }

  async deleteMachine(request: MachineRequest, call: DriverCall): Promise<{ lastKnownState: string | undefined }> {
    return await this.#run(request, async () => {
      const subject = await this.#subject(request, call);
      if (subject === undefined) throw notFound(identityOf(request, call));
      const world = this.#world(subject.namespace, call);
      const goingOn = deletionState(subject);
      const wasGoingOn = lastKnownStateOf(request) === goingOn;
      let pieces = await this.#ours(world, subject, request);
      const known = machineIn(pieces);
      const asked = new Set<string>();
      for (;;) {
        const strays = pieces.length === 0 ? await this.#strays(subject, request, call) : undefined;
        const next = nextRemoval(strays?.found ?? pieces);
        if (next.kind === 'done') {
          requireNothingHidden(identityOf(request, call), strays?.lost ?? []);
          if (asked.size === 0 && !wasGoingOn) throw notFound(identityOf(request, call));
          return { lastKnownState: undefined };
        }
        const { piece } = next;
        const step = `${next.kind} ${piece.object.metadata.uid}`;
        if (next.kind !== 'wait' && asked.has(step)) {
          const what = next.kind === 'delete' ? 'not being deleted' : `held by annotation ${DELETION_HOOK}`;
          const text = `${piece.what} still exists, and ${what}: check which webhook blocks it`;
          throw new DriverError('Aborted', text, { lastKnownState: goingOn });
        }
        asked.add(step);
        if (next.kind === 'release') await this.#release(piece, call);
        const left = next.kind === 'delete' ? await this.#remove(piece, call) : piece.object;
        if (next.kind !== 'release' && left !== undefined) {
          const why = piece.part === 'machine' ? deletionText(left) : '';
          throw new DriverError('Aborted', `${piece.what} is being deleted${why}`, { lastKnownState: goingOn });
        }
        pieces = await this.#ours(world, subject, request, known);
      }
    });
  }

  async listMachines(request: Omit<MachineRequest, 'machine'>, call: DriverCall): Promise<readonly ListedMachine[]> {
    const { namespace = '' } = request.machineClass.metadata;
    return await this.#run(request, async () => {
      const objects = await this.#listed(request, call);
      const byMachine = Map.groupBy(objects, (object) => {
        const { machineName, machineUID } = marksOf(object) ?? {};
        return JSON.stringify([machineName, machineUID]);
      });
      return [...byMachine.values()].flatMap((group) => {
        const marks = group[0] && marksOf(group[0]);
        if (marks === undefined) return [];
        const providerID = group.map(providerIDIn).find((id) => id !== undefined) ?? placeholderID(namespace, marks);
        const { machineName, machineUID } = marks;
        const deletion = group.map(deletionHeldIn).find((one) => one !== undefined);
        const listed = { providerID, machineName, machineUID, machineNamespace: namespace };
        return [deletion === undefined ? listed : { ...listed, deletion }];
      });
    });
  }

  async getVolumeIDs(pvSpecs: readonly unknown[]): Promise<readonly string[]> {
    return await Promise.resolve(pvSpecs.map(volumeHandleOf).filter((id) => id !== undefined));
  }

  async close(): Promise<void> {
    await this.#deps.close();
  }

  /** Runs what asks the API server, whose failures are those of the provider; nothing of a Secret leaves the driver. */
  async #run<T>({ secretData }: Pick<MachineRequest, 'secretData'>, work: () => Promise<T>): Promise<T> {
    return await reportingFailures(secretData, driverFailure, work);
  }

  #world(namespace: string, { signal }: DriverCall): NamespaceReader {
    return new NamespaceReader(this.#deps.reader, namespace, signal);
  }

  /**
   * Whose objects a request is about. Without a UID only the provider id counts: it is a placeholder, or that of a Machine or of its
   * infrastructure. Undefined: there is no such VM.
   */
  async #subject(request: MachineRequest, call: DriverCall): Promise<Subject | undefined> {
    const { cluster, namespace, name, uid, providerID } = identityOf(request, call);
    if (uid !== undefined)
      return isMachineName(name) ? { cluster, namespace, machineName: name, machineUID: uid } : undefined;
    if (providerID === undefined) return undefined;
    const placeholder = parsePlaceholderID(providerID);
    if (placeholder !== undefined) {
      return placeholder.namespace === namespace && isMachineName(placeholder.machineName)
        ? { cluster, ...placeholder }
        : undefined;
    }
    const found = (await this.#listed(request, call)).find((object) => providerIDIn(object) === providerID);
    const marks = found && marksOf(found);
    return marks && { ...marks, namespace };
  }

  /** Everything that was made for machines of a class, in one cluster. */
  async #listed(
    { machineClass }: Pick<MachineRequest, 'machineClass'>,
    call: DriverCall,
  ): Promise<readonly KubeObject[]> {
    const { name, namespace = '' } = machineClass.metadata;
    const world = this.#world(namespace, call);
    const labels = `${CLASS_LABEL}=${classLabelOf(name)}`;
    const objects: KubeObject[] = [...(await world.list(clusterAPIMachines, labels))];
    const { infrastructure, bootstrap } = templatesIn(machineClass.providerSpec);
    const listed: Resource<KubeObject>[] = [];
    for (const template of [infrastructure, bootstrap]) {
      const kind = template && (await world.served(clonedFrom(template, '')));
      if (kind === undefined) continue;
      objects.push(...(await world.list(kind.resource, labels)));
      listed.push(kind.resource);
    }
    objects.push(...(await world.list(secrets, labels)));
    const isListed = ({ resource }: ServedKind): boolean =>
      listed.some(({ group, plural }) => group === resource.group && plural === resource.plural);
    const others = await this.#kinds.list(namespace, labels, isListed, call.signal);
    objects.push(...others.found.map(({ object }) => object));
    return objects.filter((object) => {
      const marks = marksOf(object);
      return marks?.cluster === call.cluster && marks.className === name;
    });
  }

  /** What there is of a machine, and was made for it. */
  async #ours(
    world: NamespaceReader,
    subject: Subject,
    { machineClass }: MachineRequest,
    known?: ClusterAPIMachine,
  ): Promise<readonly ReadPiece[]> {
    const pieces = await world.pieces(subject.machineName, templatesIn(machineClass.providerSpec), known);
    return pieces.filter(({ object }) => isCreatedFor(object, subject));
  }

  /** What was made for a machine of a kind that its class named then, and names no more. */
  async #strays(
    subject: Subject,
    { machineClass }: MachineRequest,
    { signal }: DriverCall,
  ): Promise<{ readonly found: readonly ReadPiece[]; readonly lost: readonly string[] }> {
    const { infrastructure, bootstrap } = templatesIn(machineClass.providerSpec);
    const named = [infrastructure, bootstrap].map((one) => one && definitionNameOf(clonedFrom(one, '')));
    const isNamed = ({ resource: { plural, group } }: ServedKind): boolean => named.includes(`${plural}.${group}`);
    const labels = `${CLUSTER_API_MACHINE_UID_LABEL}=${subject.machineUID}`;
    const { found, lost } = await this.#kinds.list(subject.namespace, labels, isNamed, signal);
    return { found: found.map(strayPiece).filter(({ object }) => isCreatedFor(object, subject)), lost };
  }

  /** Everything that is not there yet; the Machine last, since providers begin with it. */
  async #make(world: NamespaceReader, plan: Plan, userData: string | undefined): Promise<ClusterAPIMachine> {
    const { spec, marks } = plan;
    await requireCluster(world, plan);
    await requireDataSecret(world, plan);
    const clones = await this.#clones(world, plan);
    if (userData !== undefined) await this.#ensure(world, secrets, userDataSecret(plan, userData), plan);
    for (const { resource, object } of clones) await this.#ensure(world, resource, object, plan);
    const versions = new Map(clones.map(({ resource }) => [`${resource.plural}.${resource.group}`, resource.version]));
    const machine = await this.#ensure(world, clusterAPIMachines, clusterAPIMachineOf(plan, versions), plan);
    const { kind } = spec.infrastructureRef;
    this.#deps.log.info({ machine: `${plan.namespace}/${marks.machineName}`, template: kind }, 'created a Machine');
    return machine;
  }

  /** Bootstrap before infrastructure, as Cluster API has it. Throws InvalidArgument for a template that is wrong, or is not there. */
  async #clones(
    world: NamespaceReader,
    plan: Plan,
  ): Promise<readonly { readonly resource: Resource<KubeObject>; readonly object: New<KubeObject> }[]> {
    const { bootstrap, infrastructureRef } = plan.spec;
    const named = [
      ...(bootstrap.from === 'template'
        ? [{ reference: bootstrap.template, path: 'providerSpec.bootstrap.configRef' }]
        : []),
      { reference: infrastructureRef, path: 'providerSpec.infrastructureRef' },
    ];
    return await Promise.all(
      named.map(async ({ reference, path }) => {
        const object = cloned(plan, await world.template(reference, path));
        if ('problem' in object) throw new DriverError('InvalidArgument', `${path}: ${object.problem}`);
        const kind = await world.kind(clonedFrom(reference, ''));
        if (kind.kind !== 'served') throw new DriverError('InvalidArgument', `${path}: ${kind.problem}`);
        return { resource: kind.resource, object };
      }),
    );
  }

  /** Makes an object, unless it is there for the same machine: looking and making are one step, which the API server takes. */
  async #ensure<T extends KubeObject>(
    world: NamespaceReader,
    resource: Resource<T>,
    object: New<T>,
    { marks }: Plan,
  ): Promise<T> {
    const made = await this.#deps.writer
      .create('create', resource, object, { signal: world.signal })
      .catch(ignoreAlreadyExists);
    if (made !== undefined) return made;
    const what = `${resource.kind} ${object.metadata.name}`;
    const there = await world.read(resource, object.metadata.name);
    if (there === undefined || isBeingDeleted(there)) throw inTheWay({ kind: 'going', what });
    if (!isCreatedFor(there, marks)) throw inTheWay({ kind: 'foreign', what });
    return there;
  }

  /** The Secret with the user data goes with the Machine, also where somebody else deletes that. */
  async #own(world: NamespaceReader, { metadata: { name, uid } }: ClusterAPIMachine): Promise<void> {
    const { signal } = world;
    const secret = await world.read(secrets, userDataSecretName(name), { metadataOnly: true });
    if (secret === undefined) return;
    const { ownerReferences = [] } = secret.metadata;
    if (ownerReferences.some((one) => one.uid === uid)) return;
    const owner = { apiVersion: this.#deps.servedAs(clusterAPIMachines), kind: 'Machine', name, uid };
    const patch = mergePatchIfUnchanged(secret, { metadata: { ownerReferences: [...ownerReferences, owner] } });
    await this.#deps.writer.patch('change', secrets, refOf(secret), patch, { signal });
  }

  /**
   * Somebody has deleted a Machine before it had a VM that a Node could be of: there is nothing to drain, and it is made anew when it is
   * gone.
   */
  async #releaseAll(pieces: readonly ReadPiece[], call: DriverCall): Promise<void> {
    const piece = pieces.find(({ part }) => part === 'machine');
    const machine = machineIn(pieces);
    if (piece === undefined || machine === undefined || !isBeingDeleted(machine) || !hasDeletionHook(machine)) return;
    if (vmOf(machine) === undefined) await this.#release(piece, call);
  }

  /** Takes our hook from a Machine. One that is gone needs none, and one of another UID is not ours. */
  async #release({ resource, object, what }: ReadPiece, { signal }: DriverCall): Promise<void> {
    const patch = mergePatch(object, { metadata: { annotations: { [DELETION_HOOK]: null } } });
    try {
      await this.#deps.writer.patch('destroy', resource, refOf(object), patch, { signal });
      this.#deps.log.info({ object: what }, 'released a Machine');
    } catch (err) {
      if (!isNotFound(err) && !isConflict(err)) throw err;
    }
  }

  /** Resolves with the object while it is held, with undefined when it is gone, or another one has its name. */
  async #remove({ resource, object, what }: ReadPiece, { signal }: DriverCall): Promise<KubeObject | undefined> {
    const { uid } = object.metadata;
    try {
      const left = await this.#deps.writer.delete('destroy', resource, refOf(object), { uid }, { signal });
      this.#deps.log.info({ object: what }, 'deleted an object');
      return left;
    } catch (err) {
      if (isNotFound(err) || isConflict(err)) return undefined;
      throw err;
    }
  }
}

/** Throws PermissionDenied where nothing is left of a machine as far as can be seen: of a kind that may not be listed any more nobody can say that. */
function requireNothingHidden({ namespace, name }: MachineIdentity, lost: readonly string[]): void {
  if (lost.length === 0) return;
  throw new DriverError(
    'PermissionDenied',
    `cannot determine whether machine ${namespace}/${name} still has objects: no longer permitted to list ${lost.join(', ')}; allow it, or delete kinds that are not needed`,
  );
}

/** Throws InvalidArgument unless the Cluster is there: nothing would come of the Machine without it. */
async function requireCluster(world: NamespaceReader, { namespace, spec }: Plan): Promise<void> {
  const { clusterName } = spec satisfies Pick<ClusterAPIProviderSpec, 'clusterName'>;
  if ((await world.read(clusterAPIClusters, clusterName)) !== undefined) return;
  const problem = `Cluster ${clusterName} does not exist in namespace ${namespace}: create it, or correct the name`;
  throw new DriverError('InvalidArgument', `providerSpec.clusterName: ${problem}`);
}

/** Throws InvalidArgument unless the Secret is there that the class names; what is in it is its Machine's to say. */
async function requireDataSecret(world: NamespaceReader, { namespace, spec: { bootstrap } }: Plan): Promise<void> {
  if (bootstrap.from !== 'secret') return;
  if ((await world.read(secrets, bootstrap.name, { metadataOnly: true })) !== undefined) return;
  const problem = `Secret ${bootstrap.name} does not exist in namespace ${namespace}: create it, with the bootstrap data under key value, or correct the name`;
  throw new DriverError('InvalidArgument', `${GIVEN_SECRET_PATH}: ${problem}`);
}

function inTheWay({ kind, what }: NonNullable<ReturnType<typeof obstacleIn>>): DriverError {
  return kind === 'going'
    ? new DriverError('Aborted', `${what} is still being deleted`)
    : new DriverError(
        'AlreadyExists',
        `${what} already exists and does not belong to this machine: delete or rename it`,
      );
}

function machineIn(pieces: readonly ReadPiece[]): ClusterAPIMachine | undefined {
  return pieces.find(({ part }) => part === 'machine')?.object;
}

/** The VM, once the provider has told of it; that of a Machine which goes is there until its infrastructure is gone. */
function vmOf({ metadata, spec, status }: ClusterAPIMachine): VirtualMachine | undefined {
  const { providerID = '' } = spec ?? {};
  if (providerID === '') return undefined;
  const addresses: NodeAddress[] = (status?.addresses ?? []).map(({ type, address }) => ({ type, address }));
  return { providerID, nodeName: expectedNodeName(status, metadata.name), addresses };
}

/** The VM of an infrastructure whose Machine is gone. */
function vmLeftIn({ object, contract }: ReadPiece, machineName: string): VirtualMachine | undefined {
  const { providerID, addresses } = readInfrastructure(object, contract ?? 'v1beta2');
  if (providerID === undefined) return undefined;
  return { providerID, nodeName: expectedNodeName({ addresses }, machineName), addresses };
}

function toldIn(
  pieces: readonly ReadPiece[],
): Pick<Parameters<typeof unprovisioned>[0], 'infrastructure' | 'bootstrap'> {
  const told = <Report>(
    part: ReadPiece['part'],
    read: (object: KubeObject, contract: 'v1beta2' | 'v1beta1') => Report,
  ): Reported<Report> | undefined => {
    const piece = pieces.find((one) => one.part === part);
    return piece && { what: piece.what, report: read(piece.object, piece.contract ?? 'v1beta2') };
  };
  return { infrastructure: told('infrastructure', readInfrastructure), bootstrap: told('bootstrap', readBootstrap) };
}

/** That somebody deletes a Machine which we hold: the driver takes its hook off before it deletes one itself. */
function deletionHeldIn(object: KubeObject): string | undefined {
  if (!isBeingDeleted(object) || !hasDeletionHook(object)) return undefined;
  return `Machine ${object.metadata.name} of Cluster API is being deleted, but is held by annotation ${DELETION_HOOK}`;
}

/** Of a Machine, and of its infrastructure. */
function providerIDIn(object: KubeObject): string | undefined {
  const { spec } = object as { readonly spec?: { readonly providerID?: unknown } };
  const { providerID } = spec ?? {};
  return typeof providerID === 'string' && providerID !== '' ? providerID : undefined;
}

/** What a volume is called in the status of its Node, whichever CSI driver it is of. */
function volumeHandleOf(spec: unknown): string | undefined {
  const { csi } = (spec ?? {}) as { readonly csi?: { readonly volumeHandle?: unknown } };
  const { volumeHandle } = csi ?? {};
  return typeof volumeHandle === 'string' && volumeHandle !== '' ? volumeHandle : undefined;
}
