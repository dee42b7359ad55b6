import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Mutations only, without bodies; Events have no consequences, and reviews are questions. */
const POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
  - { level: None, resources: [{ group: "", resources: [events] }, { group: authorization.k8s.io }] }
  - { level: Metadata, verbs: [create, update, patch, delete, deletecollection] }
`;

/** One mutation that the API server has answered. */
export interface AuditedMutation {
  readonly verb: string;
  readonly uri: string;
  readonly code: number;
  /** When the request arrived, in ms since the epoch. */
  readonly receivedMs: number;
  /** Groups of who sent it. */
  readonly groups: readonly string[];
}

interface AuditLine {
  readonly verb: string;
  readonly requestURI: string;
  readonly responseStatus?: { readonly code?: number };
  readonly requestReceivedTimestamp: string;
  readonly user: { readonly groups?: readonly string[] };
}

/** What an API server notes of all mutations: who changed what, and when. */
export class Audit implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'machinist-audit-'));

  constructor() {
    writeFileSync(join(this.#directory, 'policy.yaml'), POLICY);
  }

  /** For kube-apiserver. */
  get arguments(): readonly string[] {
    return [`--audit-policy-file=${join(this.#directory, 'policy.yaml')}`, `--audit-log-path=${this.#log}`];
  }

  /** All mutations so far, in the order of their answers. */
  mutations(): readonly AuditedMutation[] {
    const lines = readFileSync(this.#log, 'utf8').split('\n').slice(0, -1); // the last one may not be whole
    return lines.map((line) => {
      const { verb, requestURI, responseStatus, requestReceivedTimestamp, user } = JSON.parse(line) as AuditLine; // the server's
      return {
        verb,
        uri: requestURI,
        code: responseStatus?.code ?? 0,
        receivedMs: Date.parse(requestReceivedTimestamp),
        groups: user.groups ?? [],
      };
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  get #log(): string {
    return join(this.#directory, 'audit.jsonl');
  }
}
