import { createHash } from 'node:crypto';

import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { keyOf, type KubeObject } from '../../apis/meta.ts';
import type { Secret } from '../../apis/wire.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { untilAborted } from '../../base/clock/deadline.ts';
import type { Reader } from '../../kube/client/client.ts';
import { isNotFound } from '../../kube/client/errors.ts';
import { secrets } from '../../kube/client/resource.ts';
import { dataSecretIndex, SECRET_INDEX, secretIndex } from '../../operator/indexes/secret-references.ts';

/** Data of the Secrets of a class. Never to be logged or stored. */
export interface ClassSecrets {
  /** Decoded; data of `credentialsSecretRef` lies over that of `secretRef`. Not to be changed. */
  readonly data: Readonly<Record<string, Uint8Array>>;
  /** Keys of Secrets that the class names and that do not exist, or are in a foreign namespace. */
  readonly missing: readonly string[];
  /** Changes if and only if content changes, or the Secret with bootstrap data that the class names; tells nothing of it. */
  readonly fingerprint: string;
}

export interface SecretContentsDeps {
  readonly reader: Reader;
  /** Metadata of the Secrets of our namespace: tells when content may have changed. */
  readonly secrets: Informer<KubeObject>;
  /** With the index SECRET_INDEX. */
  readonly classes: Informer<MachineClass>;
  readonly clock: Clock;
}

interface Content {
  readonly resourceVersion: string;
  readonly data: Readonly<Record<string, Uint8Array>>;
  readonly fingerprint: string;
}

/** How long the answer that a Secret does not exist serves while the cache does not know it either. */
const ABSENT_MS = 5_000;

/**
 * Content of those Secrets, and only those, that a MachineClass names: read live when first needed, kept until the
 * Secret's resourceVersion changes, and forgotten when it vanishes or no class names it any more.
 */
export class SecretContents {
  readonly #deps: SecretContentsDeps;
  readonly #contents = new Map<string, Content>();
  readonly #absentUntilMs = new Map<string, number>();
  readonly #reading = new Map<string, Promise<Content | undefined>>();

  constructor(deps: SecretContentsDeps) {
    this.#deps = deps;
    const forgetUnnamed = (key: string): void => {
      if (deps.classes.byIndex(SECRET_INDEX, key).length === 0) this.#forget(key);
    };
    deps.secrets.onChange((old, current) => {
      if (current === undefined && old !== undefined) this.#forget(keyOf(old));
      if (current !== undefined) this.#absentUntilMs.delete(keyOf(current));
    });
    deps.classes.onChange((old) => {
      if (old !== undefined) for (const key of secretIndex(old)) forgetUnnamed(key);
    });
  }

  /** The merged data of a class. Throws ApiError when a Secret cannot be read for another reason than that it is missing. */
  async of(machineClass: MachineClass, signal: AbortSignal): Promise<ClassSecrets> {
    const keys = secretIndex(machineClass);
    const contents = await Promise.all(keys.map((key) => this.#contentOf(machineClass, key, signal)));
    const data = Object.assign({}, ...contents.map((content) => content?.data)) as Record<string, Uint8Array>;
    return {
      data,
      missing: keys.filter((_, i) => contents[i] === undefined),
      fingerprint: digest([
        ...contents.map((content) => content?.fingerprint ?? ''),
        ...this.#startedWith(machineClass),
      ]),
    };
  }

  /** Which version there is of the Secret with bootstrap data that a class names, if it names one. */
  #startedWith(machineClass: MachineClass): readonly string[] {
    return dataSecretIndex(machineClass).map((key) => {
      const { uid = '', resourceVersion = '' } = this.#deps.secrets.get(key)?.metadata ?? {};
      return `${uid}/${resourceVersion}`;
    });
  }

  #contentOf(machineClass: MachineClass, key: string, signal: AbortSignal): Promise<Content | undefined> {
    const [namespace = '', name = ''] = key.split('/');
    // As in the original: our permissions must not lend themselves to classes that name Secrets of others.
    if (namespace !== machineClass.metadata.namespace) return Promise.resolve(undefined);
    const known = this.#contents.get(key);
    const current = this.#deps.secrets.get(key)?.metadata.resourceVersion;
    if (known !== undefined && known.resourceVersion === current) return Promise.resolve(known);
    const isAbsent = current === undefined && this.#deps.clock.monotonicMs() < (this.#absentUntilMs.get(key) ?? 0);
    if (isAbsent) return Promise.resolve(undefined);

    const reading = this.#reading.get(key) ?? this.#read(key, namespace, name);
    this.#reading.set(key, reading);
    return untilAborted(reading, signal);
  }

  /** One read for all who wait for it; it is not aborted with the first of them. */
  async #read(key: string, namespace: string, name: string): Promise<Content | undefined> {
    try {
      const content = contentOf(await this.#deps.reader.get(secrets, { namespace, name }));
      if (this.#deps.classes.byIndex(SECRET_INDEX, key).length > 0) this.#contents.set(key, content);
      return content;
    } catch (err) {
      if (!isNotFound(err)) throw err;
      this.#contents.delete(key);
      this.#absentUntilMs.set(key, this.#deps.clock.monotonicMs() + ABSENT_MS);
      return undefined;
    } finally {
      this.#reading.delete(key);
    }
  }

  #forget(key: string): void {
    this.#contents.delete(key);
    this.#absentUntilMs.delete(key);
  }
}

function contentOf({ metadata, data }: Secret): Content {
  const entries = Object.entries(data ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    resourceVersion: metadata.resourceVersion,
    data: Object.fromEntries(entries.map(([name, value]) => [name, Buffer.from(value, 'base64')])),
    fingerprint: digest(entries.flat()),
  };
}

/** A hash in which no two different lists look the same. */
function digest(deps: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(deps)).digest('hex');
}
