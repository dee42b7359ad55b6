import { jest } from '@jest/globals';

/** Loaded before each test file of the levels with a server: jest's 5 s are made for tests without one. */
jest.setTimeout(60_000);
