import type { APIRequest } from '../api-server/api-server.ts';
import { isMembers, type Members } from '../api-server/json.ts';
import { Normaliser } from './normalise.ts';
import type { Given, Row } from './row.ts';

/** An answer as it came over the wire; a body that is no JSON is a text. */
export interface Answer {
  readonly code: number;
  readonly body: unknown;
}

/** One of the servers that are compared, with what it has answered so far. */
export class Asked {
  readonly #given: Given;
  readonly #saved = new Map<string, unknown>();
  readonly #normaliser: Normaliser;
  readonly #answer: (request: APIRequest) => Promise<Answer>;

  constructor(where: Pick<Given, 'namespace' | 'prefix'>, answer: (request: APIRequest) => Promise<Answer>) {
    this.#given = { ...where, saved: (name) => this.#saved.get(name) };
    this.#normaliser = new Normaliser([[where.namespace, 'NS']]);
    this.#answer = answer;
  }

  /** What of the answer to a row is compared. */
  async ask(row: Row): Promise<Members> {
    const { code, body } = await this.#answer(row.request(this.#given));
    if (row.save !== undefined) this.#saved.set(row.save, body);
    return compared({ code, body: this.#normaliser.of(ofItself(body)) }, row);
  }

  /** A value of this server as it is compared with one of the other. */
  normalised(value: unknown): unknown {
    return this.#normaliser.of(value);
  }

  /** Whether a row is about a kind that is built in. */
  isBuiltIn(row: Row): boolean {
    return !/^\/apis\/(machine\.sapcloud\.io|\w+\.ironcore\.dev|cluster\.k8s\.io|cluster\.x-k8s\.io|kaas\.mirantis\.com)\//.test(
      row.request(this.#given).path,
    );
  }
}

function compared({ code, body }: Answer, { kept }: Row): Members {
  if (kept?.what === 'all') return {};
  if (kept?.what === 'body') return { code };
  if (typeof body === 'string') return { code };
  if (!isMembers(body) || body['kind'] !== 'Status' || body['status'] !== 'Failure')
    return { code, body: isMembers(body) ? describedAlike(body) : body };
  const { message, reason, details, metadata } = body;
  const { causes, ...others } = isMembers(details) ? details : {};
  if (kept?.what === 'message') return { code, reason };
  if (kept?.what === 'causes') return { code, reason, details: others };
  // How Go shows a value that is invalid is not followed: the fields are, and why.
  const what = reason === 'Invalid' ? { fields: fieldsOf(causes) } : { message };
  // Why something is forbidden is read by clients.
  const why = reason === 'Forbidden' ? { causes } : {};
  return { code, reason, details: others, metadata, ...what, ...why };
}

/** Texts and hashes that describe kinds are not followed, nor the order of kinds. */
function describedAlike(body: Members): Members {
  if (body['kind'] === 'Table') {
    const { columnDefinitions, rows, ...others } = body as {
      columnDefinitions: Members[];
      rows: Members[];
    } & Members;
    return {
      ...others,
      columnDefinitions: columnDefinitions.map(({ description: _description, ...column }) => column),
      rows: rows.map(({ cells, object }) => ({ cells: (cells as unknown[]).map(ageless), object })),
    };
  }
  if (body['kind'] !== 'APIResourceList') return body;
  const resources = (body['resources'] as Members[]).map(
    ({ storageVersionHash: _hash, verbs, ...resource }): Members => ({
      ...resource,
      verbs: (verbs as string[]).filter((verb) => verb !== 'deletecollection').toSorted(),
    }),
  );
  return { ...body, resources: resources.toSorted((a, b) => (String(a['name']) < String(b['name']) ? -1 : 1)) };
}

/**
 * An answer without resourceVersions that others choose, too: that of a list is of the whole server, and tables show Nodes. What is told by the
 * order in which it was first seen must not see them.
 */
function ofItself(body: unknown): unknown {
  if (!isMembers(body)) return body;
  const { metadata, rows } = body;
  const own = isMembers(metadata) && ('items' in body || 'rows' in body) ? { metadata: unversioned(metadata) } : {};
  if (!Array.isArray(rows)) return { ...body, ...own };
  const told = (rows as Members[]).map((row) => {
    const { object } = row;
    if (!isMembers(object) || !isMembers(object['metadata'])) return row;
    return { ...row, object: { ...object, metadata: unversioned(object['metadata']) } };
  });
  return { ...body, ...own, rows: told };
}

function unversioned(metadata: Members): Members {
  return 'resourceVersion' in metadata ? { ...metadata, resourceVersion: '' } : metadata;
}

const AGE = /^\d+[smhdy](\d+[smhd])?$/;

function ageless(cell: unknown): unknown {
  return typeof cell === 'string' && AGE.test(cell) ? 'age' : cell;
}

/** Each once; without what is said only because other rules could not be looked at. */
function fieldsOf(causes: unknown): string[] {
  const all = Array.isArray(causes) ? (causes as Members[]) : [];
  const told = all.filter(({ message }) => !String(message).includes('some validation rules were not checked'));
  return [...new Set(told.map(({ field, reason }) => `${String(field)}: ${String(reason)}`))].toSorted();
}

/**
 * Of an answer about a built-in kind, what the other answer has too: such kinds have many defaults that nothing simulated reads. An
 * absent member of the whole is left absent, so that what is shown must be there.
 */
export function shownIn(whole: unknown, part: unknown): unknown {
  if (Array.isArray(part) && Array.isArray(whole)) {
    return whole.length === part.length ? whole.map((item, i) => shownIn(item, part[i])) : whole;
  }
  if (!isMembers(part) || !isMembers(whole)) return whole;
  return Object.fromEntries(
    Object.keys(part).flatMap((name) => (name in whole ? [[name, shownIn(whole[name], part[name])]] : [])),
  );
}
