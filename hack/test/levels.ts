/** A level of tests: what it needs decides what is started before it. */
export interface Level {
  readonly name: 'unit' | 'integration' | 'faults' | 'e2e';
  /** Path patterns given to jest. */
  readonly paths: readonly string[];
  /** Whether a real control plane must be built first. */
  readonly needsControlPlane: boolean;
}

/** In the order in which they run: cheap ones first, so that a plain mistake is seen at once. */
export const LEVELS: readonly Level[] = [
  { name: 'unit', paths: ['<rootDir>/(cmd|pkg|hack)/'], needsControlPlane: false },
  { name: 'integration', paths: ['<rootDir>/test/integration/'], needsControlPlane: true },
  { name: 'faults', paths: ['<rootDir>/test/faults/'], needsControlPlane: true },
  { name: 'e2e', paths: ['<rootDir>/test/e2e/'], needsControlPlane: true },
];
