"""Tool calls: did the call work, may it be repeated, and is there anything to base an answer on?"""
