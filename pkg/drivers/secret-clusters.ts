import { createHash } from 'node:crypto';

import type { Clock } from '../base/clock/clock.ts';
import { foreignEndpoint } from '../kube/client/config.ts';
import { ConfigError } from '../kube/client/config-error.ts';
import { GatedWriter } from '../kube/client/gated-writer.ts';
import { HttpReader } from '../kube/client/http-reader.ts';
import { Transport } from '../kube/client/transport.ts';
import type { DriverCluster } from './cluster.ts';
import { openGate } from './open-gate.ts';
import { invalid } from './spec-fields.ts';

/** A namespace of a cluster in which a driver's VMs are objects. */
export interface SecretCluster extends DriverCluster {
  readonly namespace: string;
}

interface Entry {
  readonly cluster: Promise<DriverCluster & { readonly namespace: string | undefined }>;
  usedAtMs: number;
}

/** A connection that nobody has used for so long is closed: its Secret has changed, or is gone. */
const UNUSED_MS = 3_600_000;

/** The clusters that Secrets of classes lead to, by members `kubeconfig` and `namespace`: one connection for each kubeconfig. */
export class SecretClusters {
  readonly #clock: Clock;
  readonly #userAgent: string;
  /** By a hash, so that no credential is kept as a key. */
  readonly #entries = new Map<string, Entry>();

  /** `userAgent` is who the audit log says it was. */
  constructor({ clock, userAgent }: { readonly clock: Clock; readonly userAgent: string }) {
    this.#clock = clock;
    this.#userAgent = userAgent;
  }

  /**
   * The cluster that a Secret leads to, and the namespace in it: member `namespace`, else that of the kubeconfig's context. Throws
   * InvalidArgument that names the member.
   */
  async open(secretData: Readonly<Record<string, Uint8Array>>): Promise<SecretCluster> {
    const content = textIn(secretData, 'kubeconfig');
    if (content === '') throw invalid('secret: kubeconfig is missing or empty');
    const cluster = await this.#cluster(content);
    const namespace = textIn(secretData, 'namespace') || (cluster.namespace ?? '');
    if (namespace === '') throw invalid('secret: namespace must be set, or be set in the context of kubeconfig');
    return { ...cluster, namespace };
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.all(entries.map(closed));
  }

  async #cluster(content: string): Promise<DriverCluster & { readonly namespace: string | undefined }> {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, entry] of this.#entries) {
      if (nowMs - entry.usedAtMs < UNUSED_MS) continue;
      this.#entries.delete(key);
      void closed(entry);
    }
    const key = createHash('sha256').update(content).digest('hex');
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.usedAtMs = nowMs;
      return await known.cluster;
    }
    const entry = { cluster: this.#connect(content), usedAtMs: nowMs };
    this.#entries.set(key, entry);
    try {
      return await entry.cluster;
    } catch (err) {
      this.#entries.delete(key);
      throw err instanceof ConfigError ? invalid(`secret: kubeconfig: ${err.message}`) : err;
    }
  }

  async #connect(content: string): Promise<DriverCluster & { readonly namespace: string | undefined }> {
    const endpoint = await foreignEndpoint({ content: { kubeconfig: content }, clock: this.#clock });
    const transport = new Transport({ endpoint, clock: this.#clock, userAgent: this.#userAgent });
    const writer = new GatedWriter({ transport, gate: openGate, cluster: 'target' });
    return { transport, reader: new HttpReader(transport), writer, namespace: endpoint.namespace };
  }
}

function textIn(secretData: Readonly<Record<string, Uint8Array>>, member: string): string {
  return Buffer.from(secretData[member] ?? new Uint8Array())
    .toString('utf8')
    .trim();
}

/** One that could not be opened has nothing to close. */
async function closed({ cluster }: Entry): Promise<void> {
  await cluster.then(({ transport }) => transport.close()).catch(() => undefined);
}
