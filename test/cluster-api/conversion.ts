import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';

import { createPki } from '../../hack/control-plane/pki.ts';
import { CLUSTER_API_VERSIONED } from '../../pkg/worlds/cluster-api/api/keys.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../../pkg/worlds/cluster-api/api/resources.ts';

interface Review {
  readonly request: {
    readonly uid: string;
    readonly desiredAPIVersion: string;
    readonly objects: readonly KubeObject[];
  };
}

/** What Cluster API's own webhook does for its kinds, so that they are served in both versions: between ours and the older one. */
export class ConversionWebhook implements AsyncDisposable {
  readonly #server: Server;
  readonly #directory: string;
  readonly #ca: string;

  private constructor(server: Server, directory: string, ca: string) {
    this.#server = server;
    this.#directory = directory;
    this.#ca = ca;
  }

  static async start(): Promise<ConversionWebhook> {
    const directory = mkdtempSync(path.join(tmpdir(), 'cluster-api-conversion-'));
    const pki = await createPki(directory, ['127.0.0.1']);
    const [cert, key] = [readFileSync(pki.server), readFileSync(pki.serverKey)];
    const server = createServer({ cert, key }, (request, response) => {
      void text(request).then((body) => response.end(JSON.stringify(reviewed(JSON.parse(body) as Review))));
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, '127.0.0.1', resolve);
    await promise;
    return new ConversionWebhook(server, directory, readFileSync(pki.ca).toString('base64'));
  }

  /** `spec.conversion` of a definition. */
  get conversion(): object {
    const { port } = this.#server.address() as AddressInfo;
    const clientConfig = { url: `https://127.0.0.1:${port}/`, caBundle: this.#ca };
    return { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
    rmSync(this.#directory, { recursive: true });
  }
}

function reviewed({ request: { uid, desiredAPIVersion, objects } }: Review): object {
  const convertedObjects = objects.map((object) => converted(object, desiredAPIVersion));
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    response: { uid, result: { status: 'Success' }, convertedObjects },
  };
}

function converted(object: KubeObject, apiVersion: string): object {
  const newest = [clusterAPIMachines, clusterAPIClusters].find(({ kind }) => kind === object.kind);
  if (newest === undefined || object.apiVersion === apiVersion) return { ...object, apiVersion };
  if (apiVersion !== CLUSTER_API_VERSIONED) return { ...newest.older?.toWire?.(object), apiVersion };
  const shaped = newest.older?.normalise?.(object) ?? object;
  return { ...(newest.toWire?.(shaped) ?? shaped), apiVersion };
}
