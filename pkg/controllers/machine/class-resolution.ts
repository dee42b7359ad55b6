import { createHash } from 'node:crypto';

import { isBeingDeleted } from '../../apis/meta.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass, SecretReference } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { Secret } from '../../apis/wire.ts';
import type { MachineWorld, ResolvedClass } from './context.ts';

/** Why nothing can be asked of the provider; a sentence for people, with what to do about it. */
export interface Unresolved {
  readonly problem: string;
}

/** What a class is resolved from. */
export type ClassSources = Pick<MachineWorld, 'classes' | 'secrets' | 'drivers'>;

/**
 * The MachineClass of a machine with its driver and Secret data. A Secret that does not exist contributes nothing; data of
 * `credentialsSecretRef` goes over that of `secretRef`, key by key.
 */
export function resolveClass({ classes, secrets, drivers }: ClassSources, machine: Machine): ResolvedClass | Unresolved {
  const { namespace = '' } = machine.metadata;
  const { kind = '', name = '' } = machine.spec.class ?? {};
  if (kind === '' || name === '') {
    return { problem: 'The machine names no MachineClass: set spec.class.kind to MachineClass and spec.class.name to its name.' };
  }
  const machineClass = classes.get(`${namespace}/${name}`);
  if (machineClass === undefined) return { problem: `MachineClass ${namespace}/${name} not found: create it.` };
  const driver = drivers.resolve(machineClass, machine);
  if (driver === undefined) {
    const provider = machineClass.provider ?? '';
    return {
      problem: `No driver is configured for provider ${JSON.stringify(provider)} of MachineClass ${namespace}/${name}: start the controller with --driver ${provider}=<address>, or correct the class.`,
    };
  }
  const found = secretsOf(secrets, machineClass);
  return {
    machineClass,
    driver,
    secretData: Object.assign({}, ...found.map(decodedDataOf)) as Record<string, Uint8Array>,
    fingerprint: fingerprintOf(machine, machineClass, found),
  };
}

/** Whether resolving failed. */
export function isUnresolved(resolved: ResolvedClass | Unresolved): resolved is Unresolved {
  return 'problem' in resolved;
}

/** The Secrets that a class names, by reference; those that do not exist are left out. */
export function secretKeysOf({ secretRef, credentialsSecretRef, metadata }: MachineClass): string[] {
  return [secretRef, credentialsSecretRef].flatMap((ref) => keyOfRef(ref, metadata.namespace ?? ''));
}

function keyOfRef(ref: SecretReference | undefined, classNamespace: string): string[] {
  if (ref?.name === undefined || ref.name === '') return [];
  const namespace = ref.namespace === undefined || ref.namespace === '' ? classNamespace : ref.namespace;
  return [`${namespace}/${ref.name}`];
}

function secretsOf(secrets: ClassSources['secrets'], machineClass: MachineClass): Secret[] {
  return secretKeysOf(machineClass).flatMap((key) => secrets.get(key) ?? []);
}

interface Content {
  readonly data: Readonly<Record<string, Uint8Array>>;
  readonly digest: string;
}

/** By the cached object, so that 2,000 machines of a class decode its Secret once. */
const contents = new WeakMap<Secret, Content>();

function contentOf(secret: Secret): Content {
  const known = contents.get(secret);
  if (known !== undefined) return known;
  const encoded = Object.entries(secret.data ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const content: Content = {
    data: Object.fromEntries(encoded.map(([key, value]) => [key, Uint8Array.from(Buffer.from(value, 'base64'))])),
    digest: createHash('sha256').update(JSON.stringify(encoded)).digest('hex'),
  };
  contents.set(secret, content);
  return content;
}

function decodedDataOf(secret: Secret): Content['data'] {
  return contentOf(secret).data;
}

/** Setting a deletionTimestamp raises the generation, but asks for nothing new. */
function fingerprintOf(machine: Machine, machineClass: MachineClass, found: readonly Secret[]): string {
  const generation = isBeingDeleted(machine) ? 'deleted' : String(machine.metadata.generation ?? 0);
  return [generation, machineClass.metadata.resourceVersion, ...found.map((secret) => contentOf(secret).digest)].join('/');
}
