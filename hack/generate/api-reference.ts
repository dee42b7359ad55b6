import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { DEFINITIONS } from './crds/all.ts';
import type { Definition } from './crds/definition.ts';
import type { Rule, Schema } from './crds/schema.ts';
import { table } from './table.ts';
import { WORLDS } from './worlds/index.ts';

const INTRODUCTION = `# API

Generated from \`hack/generate/crds\`, from which \`crds/\` is generated too.

Group and version: \`${API_VERSION}\`. All kinds are namespaced. Times are RFC 3339; durations are Go durations (\`30s\`, \`10m\`, \`1h30m\`).

Validation rules apply when an object is created, and when the validated field changes. An invalid object that was stored before the rules existed can
still be changed in all other fields, its status, its finalizers and its scale, and it can be deleted. The controllers do not act on it, and report the
reason in condition \`InvalidSpec\` or in an Event.
`;

/** The spec of templates has the fields of a Machine's spec: they are listed there only. */
const TEMPLATE_SPEC = 'spec.template.spec';

/** docs/reference/api.md, and the pages of other APIs, from the descriptions of the CRDs. */
export async function apiReferences(): Promise<[file: string, text: string][]> {
  const pages = [
    { file: 'docs/reference/api.md', introduction: INTRODUCTION, definitions: DEFINITIONS },
    ...WORLDS.flatMap(({ page, definitions }) => (page === undefined ? [] : [{ ...page, definitions }])),
  ];
  return Promise.all(
    pages.map(async ({ file, introduction, definitions }): Promise<[string, string]> => {
      const sections = await Promise.all(definitions.map(sectionOf));
      return [file, [introduction, ...sections].join('\n')];
    }),
  );
}

async function sectionOf(definition: Definition): Promise<string> {
  const { kind, description, properties, required } = definition;
  const { fields, rules } = walk('', {
    properties,
    required: required ?? [],
    'x-kubernetes-validations': definition.rules,
  });
  const parts = [
    `## ${kind}\n\n${description}\n\n${namesOf(definition)}${subresources(definition)}.\n`,
    `### Fields of ${kind}\n\n${await table(['field', 'type', 'meaning'], fields)}`,
  ];
  if (rules.length > 0) parts.push(`### Validation rules of ${kind}\n\n${await table(['field', 'message'], rules)}`);
  if (definition.columns.length > 0) {
    const columns = definition.columns.map((c) => [c.name, `\`${c.jsonPath}\``, c.description + wide(c.priority)]);
    parts.push(`### Columns of ${kind}\n\n${await table(['column', 'field', 'meaning'], columns)}`);
  }
  return parts.join('\n');
}

function namesOf({ plural, shortName, foreign }: Definition): string {
  if (foreign === undefined) return `\`kubectl get ${plural}\`, short \`${shortName}\``;
  const where = foreign.isClusterScoped === true ? '; in no namespace' : '';
  return `\`kubectl get ${plural}.${foreign.group}\`, version \`${foreign.version}\`${where}`;
}

function subresources({ hasStatus, hasScale }: Definition): string {
  if (!hasStatus) return '; no subresources';
  return hasScale ? '; subresources `status` and `scale`' : '; subresource `status`';
}

function wide(priority: number | undefined): string {
  return priority === undefined ? '' : ' Only with `-o wide`.';
}

interface Rows {
  fields: string[][];
  rules: string[][];
}

/** Rows for everything below a path, in the order of the CRD. */
function walk(path: string, schema: Schema): Rows {
  const rows: Rows = {
    fields: [],
    rules: (schema['x-kubernetes-validations'] ?? []).map((rule) => ruleRow(path, rule)),
  };
  if (path === TEMPLATE_SPEC) return rows;
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const below = path === '' ? name : `${path}.${name}`;
    const isRequired = schema.required?.includes(name) === true;
    rows.fields.push([`\`${below}\``, typeOf(member), meaningOf(below, member, isRequired)]);
    const inner = walk(member.items === undefined ? below : `${below}[]`, member.items ?? member);
    rows.fields.push(...inner.fields);
    rows.rules.push(...inner.rules);
  }
  return rows;
}

function ruleRow(path: string, { fieldPath = '', message }: Rule): string[] {
  const field = `${path}${fieldPath}`.replace(/^\./, '');
  return [field === '' ? 'the object' : `\`${field}\``, message];
}

function meaningOf(path: string, { description = '', default: standard }: Schema, isRequired: boolean): string {
  const more = path === TEMPLATE_SPEC ? ' The fields of a [Machine](#machine)’s `spec`.' : '';
  const absent = standard === undefined ? '' : ` Default ${standard}.`;
  return `${description}${more}${absent}${isRequired ? ' Required.' : ''}`;
}

function typeOf(schema: Schema): string {
  if (schema['x-kubernetes-int-or-string'] === true)
    return schema.pattern === undefined ? 'integer or string' : 'quantity';
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  if (schema.additionalProperties !== undefined) return `map of ${typeOf(schema.additionalProperties)}`;
  if (schema.format === 'date-time') return 'time';
  return schema.format ?? schema.type ?? 'object';
}
