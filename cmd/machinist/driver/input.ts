import { parseYaml } from '../../../pkg/apis/yaml.ts';
import type { MachineClass } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { SecretData } from '../../../pkg/driver/conformance/options.ts';
import { CommandError } from '../command-error.ts';

/** A MachineClass as `kubectl apply` takes it. Throws CommandError, which names the file. */
export function classFrom(text: string, file: string): MachineClass {
  const { metadata = {}, ...rest } = manifestOf(text, file, 'MachineClass');
  const { name } = metadata;
  if (name === undefined) throw new CommandError(`${file}: metadata.name is missing`);
  if (rest['providerSpec'] === undefined) throw new CommandError(`${file}: providerSpec is missing`);
  const served = { uid: 'uid-verify', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
  return { ...rest, metadata: { namespace: 'default', ...served, ...metadata, name } } as MachineClass; // checked above
}

/** The contents of a Secret as `kubectl apply` takes it. Throws CommandError, which names the file and quotes nothing of it. */
export function secretFrom(text: string, file: string): SecretData {
  const { data = {}, stringData = {} } = manifestOf(text, file, 'Secret');
  const encoded = Object.entries(record(data)).map(([key, value]) => [
    key,
    decoded(String(value), `${file}: data.${key}`),
  ]);
  const plain = Object.entries(record(stringData)).map(([key, value]) => [key, Buffer.from(String(value), 'utf8')]);
  return Object.fromEntries([...encoded, ...plain]) as SecretData; // pairs of a key and its bytes
}

/** As the API server takes it: lines may be broken. Node itself leaves out what is no base64. */
function decoded(value: string, where: string): Buffer {
  const text = value.replaceAll(/[\r\n]/g, '');
  if (text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) return Buffer.from(text, 'base64');
  throw new CommandError(`${where} is not valid base64; put values that are not encoded under stringData`);
}

interface Manifest extends Record<string, unknown> {
  readonly metadata?: Readonly<Record<string, string>>;
}

function manifestOf(text: string, file: string, kind: string): Manifest {
  let manifest: unknown;
  try {
    manifest = parseYaml(text);
  } catch (err) {
    throw new CommandError(`${file}: ${err instanceof Error ? err.message : 'not valid YAML'}`);
  }
  const { kind: found } = record(manifest);
  if (found !== kind)
    throw new CommandError(`${file}: expected a ${kind}, not ${typeof found === 'string' ? found : 'something else'}`);
  return manifest as Manifest; // an object, since it has a kind
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}; // narrowed
}
