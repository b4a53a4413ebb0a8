"""What people read: terminal table and report.md."""
