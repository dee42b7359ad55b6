import { definitionNameOf, type ContractReference } from '../api/contract.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { Template } from '../api/clone.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { DriverError } from '../../../driver/error.ts';
import type { GetOptions, Reader } from '../../../kube/client/client.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { apiVersionOf, customResourceDefinitions, secrets } from '../../../kube/client/resource.ts';
import type { Resource } from '../../../apis/resource.ts';
import { clusterAPIMachines } from '../api/resources.ts';
import { labelled } from '../../../drivers/labelled.ts';
import { kindBy, type KindLookup, type ServedKind } from './kinds.ts';
import { clonedFrom, userDataSecretName } from './objects.ts';
import type { Piece } from './pieces.ts';
import type { templatesIn } from './provider-spec.ts';

export interface ReadPiece extends Piece {
  readonly resource: Resource<KubeObject>;
  /** Of objects of providers. */
  readonly contract: ServedKind['contract'] | undefined;
}

type Templates = ReturnType<typeof templatesIn>;

/** Objects of one namespace, read live: a cache might not show what was just made. */
export class NamespaceReader {
  readonly #reader: Reader;
  readonly #namespace: string;
  /** Of the call for which it reads. */
  readonly signal: AbortSignal;

  constructor(reader: Reader, namespace: string, signal: AbortSignal) {
    this.#reader = reader;
    this.#namespace = namespace;
    this.signal = signal;
  }

  /**
   * All that has the name of something of a machine, whosever it is: of the kinds that its Machine names, and of those that its class names
   * now. `known` is the Machine as it was, should it be gone.
   */
  async pieces(name: string, templates: Templates, known?: ClusterAPIMachine): Promise<readonly ReadPiece[]> {
    const machine = await this.machine(name);
    const { infrastructureRef, bootstrap: { configRef } = {} } = (machine ?? known)?.spec ?? {};
    const infrastructure = [infrastructureRef, cloneOf(templates.infrastructure, name)];
    const bootstrap = [configRef, cloneOf(templates.bootstrap, name)];
    const secret = await this.read(secrets, userDataSecretName(name), { metadataOnly: true });
    return [
      ...(machine === undefined ? [] : [pieceOf('machine', clusterAPIMachines, machine)]),
      ...(await this.#external('infrastructure', infrastructure)),
      ...(await this.#external('bootstrap', bootstrap)),
      ...(secret === undefined ? [] : [pieceOf('secret', secrets, secret)]),
    ];
  }

  async machine(name: string): Promise<ClusterAPIMachine | undefined> {
    return await this.read(clusterAPIMachines, name);
  }

  async read<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    options: GetOptions = {},
  ): Promise<T | undefined> {
    const place = { name, ...(resource.namespaced && { namespace: this.#namespace }) };
    return await this.#reader.get(resource, place, { ...options, signal: this.signal }).catch(ignoreNotFound);
  }

  async list<T extends KubeObject>(resource: Resource<T>, labelSelector: string): Promise<readonly T[]> {
    return await labelled(this.#reader, resource, { namespace: this.#namespace, labelSelector, signal: this.signal });
  }

  async kind(reference: Omit<ContractReference, 'name'>): Promise<KindLookup> {
    const definition = await this.read(customResourceDefinitions, definitionNameOf(reference), { metadataOnly: true });
    return kindBy(definition, reference);
  }

  /** Undefined: there can be no objects of the kind. Throws FailedPrecondition where that cannot be told. */
  async served(reference: Omit<ContractReference, 'name'>): Promise<ServedKind | undefined> {
    const kind = await this.kind(reference);
    if (kind.kind === 'unclear') throw new DriverError('FailedPrecondition', kind.problem);
    return kind.kind === 'served' ? kind : undefined;
  }

  /** A template that `path` of the class names. Throws InvalidArgument. */
  async template(reference: ContractReference, path: string): Promise<Template> {
    const kind = await this.kind(reference);
    if (kind.kind !== 'served') throw wrong(`${path}: ${kind.problem}`);
    const template = await this.read(kind.resource, reference.name);
    if (template === undefined) {
      const what = `${reference.kind} ${reference.name} in namespace ${this.#namespace}`;
      throw wrong(`${path}: ${what} does not exist: create it, or correct the reference`);
    }
    return { ...template, apiVersion: apiVersionOf(kind.resource), kind: reference.kind };
  }

  async #external(
    part: 'infrastructure' | 'bootstrap',
    named: readonly (ContractReference | undefined)[],
  ): Promise<readonly ReadPiece[]> {
    const references = named.filter((one) => one !== undefined);
    const distinct = new Map(references.map((one) => [`${definitionNameOf(one)}/${one.name}`, one]));
    const found: ReadPiece[] = [];
    for (const reference of distinct.values()) {
      const kind = await this.served(reference);
      const object = kind && (await this.read(kind.resource, reference.name));
      if (kind !== undefined && object !== undefined) found.push(pieceOf(part, kind.resource, object, kind.contract));
    }
    return found;
  }
}

/** The class may be right, and what it names come later. */
function wrong(text: string): DriverError {
  return new DriverError('InvalidArgument', text);
}

function cloneOf(template: ContractReference | undefined, name: string): ContractReference | undefined {
  return template && clonedFrom(template, name);
}

/** Something of a machine, of a kind that neither its class nor its Machine names. */
export function strayPiece({ kind, object }: { readonly kind: ServedKind; readonly object: KubeObject }): ReadPiece {
  return pieceOf('infrastructure', kind.resource, object, kind.contract);
}

function pieceOf<T extends KubeObject>(
  part: Piece['part'],
  resource: Resource<T>,
  object: T,
  contract?: ServedKind['contract'],
): ReadPiece {
  const what = `${resource.kind} ${object.metadata.name}`;
  return { part, what, object, resource, contract };
}
