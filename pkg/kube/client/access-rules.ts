/** What somebody may do, in the words of a SelfSubjectAccessReview. Without `namespace`: in all of them, or of what is in none. */
export interface AccessAttributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** What a server lists as granted, as authorization.k8s.io/v1 ResourceRule; lists that are absent are empty. */
export interface ResourceRule {
  readonly verbs?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  /** Empty: all of them. */
  readonly resourceNames?: readonly string[];
}

/** Whether a rule grants this, by RBAC's rules (k8s.io/kubernetes/pkg/apis/rbac/v1, `RuleAllows`). */
export function grants(rule: ResourceRule, { verb, group, resource, subresource, name }: AccessAttributes): boolean {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [] } = rule;
  const path = subresource === undefined ? resource : `${resource}/${subresource}`;
  const paths = ['*', path, ...(subresource === undefined ? [] : [`*/${subresource}`])];
  return (
    (verbs.includes('*') || verbs.includes(verb)) &&
    (apiGroups.includes('*') || apiGroups.includes(group)) &&
    paths.some((one) => resources.includes(one)) &&
    (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name)))
  );
}
